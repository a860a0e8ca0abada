# SPDX-License-Identifier: Apache-2.0

# The public interface, installed under the names that programs include.
aclincludedir = $(includedir)/acl
aclinclude_HEADERS = \
	client/include/acl/acl.h \
	client/include/acl/acl_base.h \
	client/include/acl/acl_base_mdl.h \
	client/include/acl/acl_base_rt.h \
	client/include/acl/acl_mdl.h \
	client/include/acl/acl_op.h \
	client/include/acl/acl_platform.h \
	client/include/acl/acl_rt.h \
	client/include/acl/acl_rt_allocator.h \
	client/include/acl/acl_rt_memory_soma.h

aclrtincludedir = $(includedir)/acl/rt
aclrtinclude_HEADERS = \
	client/include/acl/rt/device.h \
	client/include/acl/rt/fault.h \
	client/include/acl/rt/init.h \
	client/include/acl/rt/kernel.h \
	client/include/acl/rt/memory.h \
	client/include/acl/rt/memory_share.h \
	client/include/acl/rt/model.h \
	client/include/acl/rt/stream.h

aclcodesincludedir = $(includedir)/acl/error_codes
aclcodesinclude_HEADERS = \
	client/include/acl/error_codes/ge_error_codes.h \
	client/include/acl/error_codes/rt_error_codes.h

EXTRA_DIST += client/acl/functions.list client/libnpu-client.map

# For kernel sources, and the layout of what npu-cc makes of them.
npuincludedir = $(includedir)/npu
npuinclude_HEADERS = \
	client/include/npu/npu_image.h \
	client/include/npu/npu_kernel.h \
	client/include/npu/npu_symbols.h
