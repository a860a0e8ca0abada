/* SPDX-License-Identifier: Apache-2.0 */
/* All is in npud.c, which the tests link too. */
#include "daemon/npud.h"

int main(int argc, char **argv)
{
	return npud_run(argc, argv);
}
