/* SPDX-License-Identifier: Apache-2.0 */
/* npu-sim: a software NPU. */
#include <stdlib.h>

#include "sim/sim_options.h"
#include "sim/sim_start.h"

int main(int argc, char **argv)
{
	struct sim_options options;
	int r = sim_options_parse(argc, argv, &options);

	if (r < 0)
		return 2;
	return r > 0 ? EXIT_SUCCESS : sim_start(&options);
}
