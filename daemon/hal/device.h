/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NPU_HAL_DEVICE_H
#define NPU_HAL_DEVICE_H

#include <pthread.h>

#include "daemon/hal/transport.h"

/*
 * Inside of struct hal_device, shared by device.c (the loop's side) and device_thread.c. Each field
 * belongs to one side; `lock` guards the shared ones.
 */

#define HAL_TEXT_MAX 512

struct hal_info {
	struct npu_version version;
	struct npu_query query;
};

struct hal_device {
	/* constant */
	struct loop *loop;
	unsigned int number;
	char *path;
	bool is_sim;
	struct hal_sim_config sim;
	uint64_t timeout_ms;
	struct hal_device_fns fns;
	void *arg;
	int wake_fd;   /* counts up: look at the queue */
	int cancel_fd; /* readable: end */

	/* loop's thread */
	enum hal_state state;
	struct hal_info info;
	unsigned int epoch; /* counts openings: a job for an older one fails */
	bool unresponsive;
	bool timer_armed;
	bool freeing;
	bool started;
	struct hal_job *flight, **flight_last;
	struct loop_timer *timer;
	uint64_t session_calls;

	/* shared */
	pthread_mutex_t lock;
	pthread_cond_t ended;
	struct hal_job *queue, **queue_last;
	bool running;
	bool abandoned; /* the thread hangs; it keeps the device, but has no loop any more */

	/* device's thread; the pid also after its end */
	pthread_t thread;
	struct hal_transport *transport;
	pid_t sim_pid;
	pid_t sim_child; /* a child of ours that has not been reaped, or 0 */
	unsigned int opened;
	int last_error; /* reported for the last failed attempt to open */
};

/* What the thread tells the loop besides jobs. Freed by the handler. */
struct hal_note {
	struct loop_post post;
	struct hal_device *device;
	int error;
	unsigned int epoch;
	char text[HAL_TEXT_MAX];
	union {
		struct npu_event event;
		struct hal_info info;
	};
};

void hal_device_on_job(struct loop_post *post);
void hal_device_on_event(struct loop_post *post);
void hal_device_on_state(struct loop_post *post);

int hal_thread_start(struct hal_device *device);
void hal_thread_push(struct hal_device *device, struct hal_job *job);
/* The first job of the queue, or NULL. Either side. */
struct hal_job *hal_thread_take(struct hal_device *device);

#endif
