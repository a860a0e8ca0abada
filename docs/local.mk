# SPDX-License-Identifier: Apache-2.0
dist_man_MANS += docs/npud.8 docs/npu-sim.8 docs/npuctl.1 docs/npu-cc.1 docs/npud.conf.5 \
	docs/npud-dbus.7

EXTRA_DIST += docs/architecture.md docs/status.md quickstart .ci/run .clang-format \
	LICENSES/README.md LICENSES/GPL-2.0
