// SPDX-License-Identifier: GPL-2.0
/*
 * The watchdog, and what follows when the card has died: every session is told that it is lost, the
 * hardware is reset and gets its firmware again, and what the card has forgotten is freed.
 *
 * Two works: "recover" tells the core, whose RESET comes back through the shim
 * (npu_watch_reset_begin()), as it does when npud asks for one; "reset" is the hardware's part.
 */
#include <linux/devcoredump.h>
#include <linux/module.h>
#include <linux/vmalloc.h>

#include "kdrv/npu_drv.h"
#include "kdrv/npu_trace.h"

#define NPU_WATCH_TICK msecs_to_jiffies(500)
#define NPU_STALL_FACTOR 3u
#define NPU_ATTEMPTS 3u
#define NPU_CALM_AFTER msecs_to_jiffies(30000) /* after which attempts count anew */
#define NPU_DUMP_BYTES 16384u

static unsigned int hang_ms = 2000;
module_param(hang_ms, uint, 0644);
MODULE_PARM_DESC(hang_ms, "milliseconds without a heartbeat until the card is taken for dead");

/* ---- telling ------------------------------------------------------------------------------- */

void npu_watch_uevent(struct npu_device *ndev, const char *text)
{
	char *env[] = { (char *)text, NULL };

	if (ndev->added)
		kobject_uevent_env(&ndev->dev.kobj, KOBJ_CHANGE, env);
}

void npu_watch_dump(struct npu_device *ndev, const char *why,
		    const struct npu_fault_record *fault)
{
	struct npu_hw_regs __iomem *regs = ndev->regs;
	char *text = vzalloc(NPU_DUMP_BYTES);
	struct npu_space *space;
	size_t n = 0;

	if (!text)
		return;
#define NPU_DUMP(...) (n += scnprintf(text + n, NPU_DUMP_BYTES - n, __VA_ARGS__))
	NPU_DUMP("npu%d: %s\nfirmware: %s\n", ndev->id, why, ndev->fw_version);
	NPU_DUMP("state: %u\nheartbeat: %llu\nboot id: 0x%llx\n", readl(&regs->state),
		 readq(&regs->heartbeat), readq(&regs->boot_id));
	NPU_DUMP("admin: sq tail %u head %u, cq tail %u head %u, backlog %u, posted %llu\n",
		 ndev->admin.tail, readl(&regs->admin_sq_head), readl(&regs->admin_cq_tail),
		 ndev->admin.cq_head, ndev->admin.nbacklog, ndev->admin.posted);
	NPU_DUMP("error: address 0x%llx info 0x%llx\n", readq(&regs->error_address),
		 readq(&regs->error_info));
	if (fault)
		NPU_DUMP("fault: kind %u session %llu queue %u task %llu address 0x%llx pc 0x%llx module %u func %u block %u core %u\n",
			 fault->kind, fault->session, fault->queue, fault->task, fault->address,
			 fault->pc, fault->module, fault->func, fault->block, fault->core);
	mutex_lock(&ndev->obj_lock);
	list_for_each_entry(space, &ndev->spaces, link) {
		unsigned long slot;

		NPU_DUMP("session %llu: slot %u%s%s\n", space->session_id, space->slot,
			 space->dead ? " dead" : "", space->ended ? " ended" : "");
		for_each_set_bit(slot, space->rings_open, NPU_MAX_QUEUES) {
			struct npu_ring_ctrl __iomem *ring = npu_space_ring(space, slot);

			NPU_DUMP("  ring %lu: tail %llu head %llu done %llu epoch %u state %u errors %llu\n",
				 slot, readq(&ring->tail), readq(&ring->head), readq(&ring->done),
				 readl(&ring->epoch), readl(&ring->state),
				 readq(&ring->error_count));
		}
	}
	mutex_unlock(&ndev->obj_lock);
#undef NPU_DUMP
	dev_coredumpv(&ndev->pdev->dev, text, n, GFP_KERNEL);
}

void npu_watch_fault(struct npu_device *ndev, const struct npu_fault_record *fault)
{
	char text[32];

	if (!__ratelimit(&ndev->fault_limit))
		return;
	snprintf(text, sizeof(text), "NPU_FAULT=%u", fault->kind);
	npu_watch_uevent(ndev, text);
	npu_watch_dump(ndev, "a task failed", fault);
}

/* ---- reset --------------------------------------------------------------------------------- */

void npu_watch_reset_begin(struct npu_device *ndev)
{
	struct npu_space *space;

	npu_admin_freeze(ndev, true);
	mutex_lock(&ndev->obj_lock);
	list_for_each_entry(space, &ndev->spaces, link)
		npu_space_kill(space, true); /* nobody writes what the card erases */
	ndev->counters_busy = false;
	mutex_unlock(&ndev->obj_lock);
	queue_work(ndev->wq, &ndev->reset);
}

/* What had ended, or was about to, when the card forgot it. */
static void npu_watch_finish_old(struct npu_device *ndev)
{
	struct npu_space *space;
	struct npu_bo *bo;

	mutex_lock(&ndev->obj_lock);
	list_for_each_entry(space, &ndev->spaces, link) {
		if (space->epoch == ndev->epoch || !space->ended || space->finishing)
			continue;
		space->finishing = true;
		queue_work(ndev->wq, &space->end);
	}
	list_for_each_entry(bo, &ndev->bos, link) {
		if (bo->epoch == ndev->epoch || bo->state != NPU_BO_ENDED)
			continue;
		bo->state = NPU_BO_FINISHING;
		queue_work(ndev->wq, &bo->end);
	}
	mutex_unlock(&ndev->obj_lock);
}

static void npu_watch_reset_work(struct work_struct *work)
{
	struct npu_device *ndev = container_of(work, struct npu_device, reset);
	u32 epoch;
	int r;

	mutex_lock(&ndev->reset_lock);
	epoch = READ_ONCE(ndev->epoch);
	r = npu_present(ndev) ? npu_fw_reset(ndev) : -ENODEV;
	if (r == 0)
		r = npu_fw_load(ndev);
	atomic64_inc(&ndev->stats.resets);
	trace_npu_reset(ndev, r);
	WRITE_ONCE(ndev->down, r < 0);
	ndev->reset_at = jiffies;
	if (r == 0) {
		npu_admin_thaw(ndev, true, epoch);
		npu_req_drop(ndev, NULL, false);
		npu_watch_finish_old(ndev);
		dev_notice(&ndev->pdev->dev, "reset done, firmware %s\n", ndev->fw_version);
	}
	mutex_unlock(&ndev->reset_lock);
	if (r < 0) {
		dev_err(&ndev->pdev->dev, "reset failed: error %d\n", r);
		npu_core_health(ndev->core, NPU_HEALTH_LOST);
	}
	npu_watch_uevent(ndev, r < 0 ? "WEDGED=rebind,bus-reset" : "WEDGED=none");
}

static void npu_watch_recover_work(struct work_struct *work)
{
	struct npu_device *ndev = container_of(work, struct npu_device, recover);
	struct npu_reset reset = { .head.size = sizeof(reset) };

	if (READ_ONCE(ndev->gone))
		return;
	dev_err(&ndev->pdev->dev, "%s: resetting it, every session is lost\n", ndev->why);
	npu_watch_dump(ndev, ndev->why, NULL);
	npu_core_health(ndev->core, NPU_HEALTH_LOST);
	npu_core_call(ndev->core, ndev->own, _IOC_NR(NPU_IOCTL_RESET), &reset, sizeof(reset),
		      NULL);
	flush_work(&ndev->reset);
	clear_bit(0, &ndev->recovering);
}

void npu_watch_recover(struct npu_device *ndev, const char *why)
{
	if (READ_ONCE(ndev->gone) || !READ_ONCE(ndev->watching) ||
	    test_and_set_bit(0, &ndev->recovering))
		return;
	strscpy(ndev->why, why, sizeof(ndev->why));
	queue_work(system_unbound_wq, &ndev->recover);
}

/* ---- the tick ------------------------------------------------------------------------------ */

/* Why the card must be taken for dead, or NULL. */
static const char *npu_watch_check(struct npu_device *ndev)
{
	unsigned long limit = msecs_to_jiffies(max(hang_ms, 500u));
	u64 heartbeat;
	u32 state;

	if (!npu_present(ndev))
		return "the card does not answer";
	state = readl(&ndev->regs->state);
	if (state == NPU_HW_DEAD)
		return "the firmware has died";
	if (state != NPU_HW_READY || readq(&ndev->regs->boot_id) != ndev->boot_id)
		return "the card was restarted";
	heartbeat = readq(&ndev->regs->heartbeat);
	if (heartbeat != ndev->heartbeat) {
		ndev->heartbeat = heartbeat;
		ndev->heartbeat_at = jiffies;
	} else if (time_after(jiffies, ndev->heartbeat_at + limit)) {
		return "the heartbeat has stopped";
	}
	if (npu_admin_stalled(ndev, NPU_STALL_FACTOR * limit))
		return "the card takes no commands";
	return NULL;
}

static void npu_watch_waits(struct npu_device *ndev)
{
	struct npu_space *space;

	mutex_lock(&ndev->obj_lock);
	list_for_each_entry(space, &ndev->spaces, link) {
		if (READ_ONCE(space->waiting) && !space->finishing)
			queue_work(ndev->wq, &space->look);
	}
	mutex_unlock(&ndev->obj_lock);
}

static void npu_watch_tick(struct work_struct *work)
{
	struct npu_device *ndev = container_of(to_delayed_work(work), struct npu_device, watch);
	const char *why = NULL;
	bool down;

	if (READ_ONCE(ndev->gone))
		return;
	/* a reset is under way: that one finds out */
	if (!mutex_trylock(&ndev->reset_lock))
		goto again;
	down = ndev->down;
	if (!down && !READ_ONCE(ndev->admin.frozen))
		why = npu_watch_check(ndev);
	mutex_unlock(&ndev->reset_lock);
	if (down && ndev->attempts < NPU_ATTEMPTS &&
	    time_after(jiffies, ndev->reset_at + (NPU_WATCH_TICK << ndev->attempts)))
		why = "the last reset failed";
	if (why) {
		ndev->attempts++;
		npu_watch_recover(ndev, why);
	} else if (!down) {
		if (ndev->attempts && time_after(jiffies, ndev->reset_at + NPU_CALM_AFTER))
			ndev->attempts = 0;
		npu_irq_poll(ndev);
		npu_admin_drain(ndev);
		npu_watch_waits(ndev);
	}
again:
	queue_delayed_work(system_unbound_wq, &ndev->watch, NPU_WATCH_TICK);
}

void npu_watch_init(struct npu_device *ndev)
{
	INIT_DELAYED_WORK(&ndev->watch, npu_watch_tick);
	INIT_WORK(&ndev->recover, npu_watch_recover_work);
	INIT_WORK(&ndev->reset, npu_watch_reset_work);
	ratelimit_state_init(&ndev->fault_limit, HZ, 1);
	ratelimit_set_flags(&ndev->fault_limit, RATELIMIT_MSG_ON_RELEASE);
}

void npu_watch_start(struct npu_device *ndev)
{
	ndev->reset_at = jiffies;
	ndev->heartbeat_at = jiffies;
	WRITE_ONCE(ndev->watching, true);
	queue_delayed_work(system_unbound_wq, &ndev->watch, NPU_WATCH_TICK);
}

void npu_watch_stop(struct npu_device *ndev)
{
	WRITE_ONCE(ndev->watching, false);
	cancel_delayed_work_sync(&ndev->watch);
	cancel_work_sync(&ndev->recover);
	cancel_work_sync(&ndev->reset);
	clear_bit(0, &ndev->recovering);
}

/* ---- power and bus reset ------------------------------------------------------------------- */

int npu_watch_suspend(struct npu_device *ndev)
{
	WRITE_ONCE(ndev->watching, false);
	cancel_delayed_work_sync(&ndev->watch);
	/* a reset that has begun comes to its end: what waits for it cannot be kept */
	flush_work(&ndev->recover);
	flush_work(&ndev->reset);
	npu_admin_freeze(ndev, false);
	return 0;
}

int npu_watch_resume(struct npu_device *ndev, bool reset)
{
	u32 epoch = READ_ONCE(ndev->epoch);

	npu_watch_start(ndev);
	if (!reset && !ndev->down && npu_present(ndev) &&
	    readl(&ndev->regs->state) == NPU_HW_READY &&
	    readq(&ndev->regs->boot_id) == ndev->boot_id) {
		/* it kept its power and its state */
		npu_admin_thaw(ndev, false, epoch);
		npu_irq_poll(ndev);
		return 0;
	}
	npu_watch_recover(ndev, reset ? "reset by request" : "the card lost its state in sleep");
	flush_work(&ndev->recover);
	return READ_ONCE(ndev->down) ? -EIO : 0;
}
