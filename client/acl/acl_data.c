/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers on the host. The half floats of this interface have no infinities and no NaNs: the
 * largest exponent is one more range of numbers on the way out, and the way in saturates.
 */
#include "client/acl/acl_internal.h"

#include <string.h>

#define HALF_SIGN 0x8000u
#define HALF_MAX  0x7bffu /* 65504 */

float aclFloat16ToFloat(aclFloat16 value)
{
	uint32_t sign = (uint32_t)(value & HALF_SIGN) << 16;
	uint32_t exponent = value >> 10 & 0x1f, mantissa = value & 0x3ff, bits;
	float magnitude;

	if (exponent == 0) {
		magnitude = (float)mantissa * 0x1p-24f;
	} else {
		bits = (exponent - 15 + 127) << 23 | mantissa << 13;
		memcpy(&magnitude, &bits, sizeof(bits));
	}
	memcpy(&bits, &magnitude, sizeof(bits));
	bits |= sign;
	memcpy(&magnitude, &bits, sizeof(bits));
	return magnitude;
}

aclFloat16 aclFloatToFloat16(float value)
{
	uint32_t bits, sign, exponent, mantissa, shift, half, rest, tie;

	memcpy(&bits, &value, sizeof(bits));
	sign = bits >> 16 & HALF_SIGN;
	exponent = bits >> 23 & 0xff;
	mantissa = bits & 0x7fffff;
	if (exponent == 0xff && mantissa)
		return HALF_MAX;
	if (exponent >= 127 + 16)
		return (aclFloat16)(sign | HALF_MAX);
	if (exponent < 127 - 25)
		return (aclFloat16)sign; /* below half of the smallest */

	/* the halves' mantissa with its leading one, then to the nearest, ties to even */
	mantissa |= 0x800000;
	shift = exponent < 127 - 14 ? 13 + (127 - 14 - exponent) : 13;
	half = mantissa >> shift;
	rest = mantissa & ((1u << shift) - 1);
	tie = 1u << (shift - 1);
	if (rest > tie || (rest == tie && (half & 1)))
		half++;
	/* a carry out of the mantissa is the next exponent, as it should be */
	if (shift == 13)
		half += (exponent - (127 - 14)) << 10;
	return (aclFloat16)(sign | (half > HALF_MAX ? HALF_MAX : half));
}

size_t aclDataTypeSize(aclDataType dataType)
{
	switch (dataType) {
	case ACL_INT8:
	case ACL_UINT8:
	case ACL_BOOL:
	case ACL_INT4:
	case ACL_UINT1:
	case ACL_HIFLOAT8:
	case ACL_FLOAT8_E5M2:
	case ACL_FLOAT8_E4M3FN:
	case ACL_FLOAT8_E8M0:
		return 1;
	case ACL_FLOAT16:
	case ACL_BF16:
	case ACL_INT16:
	case ACL_UINT16:
		return 2;
	case ACL_FLOAT:
	case ACL_INT32:
	case ACL_UINT32:
	case ACL_COMPLEX32:
		return 4;
	case ACL_INT64:
	case ACL_UINT64:
	case ACL_DOUBLE:
	case ACL_COMPLEX64:
	case ACL_FLOAT6_E3M2:
	case ACL_FLOAT6_E2M3:
	case ACL_FLOAT4_E2M1:
	case ACL_FLOAT4_E1M2:
	case ACL_HIFLOAT4:
		return 8;
	case ACL_COMPLEX128:
		return 16;
	case ACL_STRING:
	case ACL_DT_UNDEFINED:
		break;
	}
	return 0;
}
