/* SPDX-License-Identifier: Apache-2.0 */
/* Users exist while an account of theirs is open; they are few, so a hash by uid is plenty. */
#include "daemon/core/charge.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct charge_user {
	uid_t uid;
	unsigned int accounts;
	uint64_t used[CHARGE_KINDS];
	UT_hash_handle hh;
};

void charge_table_init(struct charge_table *table, const struct charge_limits *limits)
{
	table->limits = *limits;
	table->users = NULL;
}

void charge_table_fini(struct charge_table *table)
{
	assert(!table->users);
}

int charge_open(struct charge_table *table, uid_t uid, struct charge *ret_charge)
{
	struct charge_user *user;

	HASH_FIND(hh, table->users, &uid, sizeof(uid), user);
	if (!user) {
		user = calloc(1, sizeof(*user));
		if (!user)
			return -ENOMEM;
		user->uid = uid;
		HASH_ADD(hh, table->users, uid, sizeof(uid), user);
	}
	user->accounts++;
	memset(ret_charge, 0, sizeof(*ret_charge));
	ret_charge->table = table;
	ret_charge->user = user;
	return 0;
}

void charge_close(struct charge *charge)
{
	struct charge_user *user = charge->user;

	if (!user)
		return;
	for (unsigned int kind = 0; kind < CHARGE_KINDS; kind++)
		charge_give(charge, kind, charge->used[kind]);
	if (--user->accounts == 0) {
		HASH_DEL(charge->table->users, user);
		free(user);
	}
	memset(charge, 0, sizeof(*charge));
}

/* Whether amount more than used stays within limit; no overflow. */
static bool fits(uint64_t used, uint64_t amount, uint64_t limit)
{
	if (amount > UINT64_MAX - used)
		return false;
	return !limit || used + amount <= limit;
}

int charge_take(struct charge *charge, enum charge_kind kind, uint64_t amount,
		struct charge_refusal *ret_refusal)
{
	const struct charge_limits *limits = &charge->table->limits;
	bool of_session = !fits(charge->used[kind], amount, limits->session[kind]);

	if (of_session || !fits(charge->user->used[kind], amount, limits->user[kind])) {
		if (ret_refusal) {
			ret_refusal->of_user = !of_session;
			ret_refusal->used =
				of_session ? charge->used[kind] : charge->user->used[kind];
			ret_refusal->limit =
				of_session ? limits->session[kind] : limits->user[kind];
		}
		return -EDQUOT;
	}
	charge->used[kind] += amount;
	charge->user->used[kind] += amount;
	if (charge->used[kind] > charge->peak[kind])
		charge->peak[kind] = charge->used[kind];
	return 0;
}

void charge_give(struct charge *charge, enum charge_kind kind, uint64_t amount)
{
	assert(charge->used[kind] >= amount && charge->user->used[kind] >= amount);
	charge->used[kind] -= amount;
	charge->user->used[kind] -= amount;
}

void charge_quota(const struct charge *charge, enum charge_kind kind, uint64_t *ret_used,
		  uint64_t *ret_limit)
{
	const struct charge_limits *limits = &charge->table->limits;
	uint64_t session = limits->session[kind], user = limits->user[kind];
	bool by_user = user &&
		       (!session || user - charge->user->used[kind] < session - charge->used[kind]);

	*ret_used = by_user ? charge->user->used[kind] : charge->used[kind];
	*ret_limit = by_user ? user : session;
}

uint64_t charge_user_used(const struct charge *charge, enum charge_kind kind)
{
	return charge->user->used[kind];
}
