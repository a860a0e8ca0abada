/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_CORE_CHARGE_H
#define NPU_CORE_CHARGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * What sessions and users have: each resource is taken here before it exists and given back when it
 * is gone. A table holds the limits and the users; an account is one session's. The loop's thread.
 */

enum charge_kind {
	CHARGE_SESSION, /* connections */
	CHARGE_MEMORY,	/* bytes of device memory */
	CHARGE_HOST,	/* bytes of pinned host memory, images and a part of slabs included */
	CHARGE_FILE,	/* files that devices hold open */
	CHARGE_KINDS
};

struct charge_user;

struct charge_limits {
	uint64_t session[CHARGE_KINDS]; /* 0: none */
	uint64_t user[CHARGE_KINDS];
};

struct charge_table {
	struct charge_limits limits;
	struct charge_user *users;
};

struct charge {
	struct charge_table *table;
	struct charge_user *user;
	uint64_t used[CHARGE_KINDS];
	uint64_t peak[CHARGE_KINDS];
};

/* Whose limit stopped a charge. */
struct charge_refusal {
	bool of_user;
	uint64_t used;
	uint64_t limit;
};

void charge_table_init(struct charge_table *table, const struct charge_limits *limits);
/* All accounts must be closed. */
void charge_table_fini(struct charge_table *table);

int charge_open(struct charge_table *table, uid_t uid, struct charge *ret_charge);
/* Gives back all that the account still has. Closing a closed or zeroed account does nothing. */
void charge_close(struct charge *charge);

/* 0, or -EDQUOT and ret_refusal (may be NULL). */
int charge_take(struct charge *charge, enum charge_kind kind, uint64_t amount,
		struct charge_refusal *ret_refusal);
void charge_give(struct charge *charge, enum charge_kind kind, uint64_t amount);

/* Of the two limits of an account that with less left; limit 0: neither is set. */
void charge_quota(const struct charge *charge, enum charge_kind kind, uint64_t *ret_used,
		  uint64_t *ret_limit);
/* What the account's user has over all accounts. */
uint64_t charge_user_used(const struct charge *charge, enum charge_kind kind);

#endif
