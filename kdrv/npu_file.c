// SPDX-License-Identifier: GPL-2.0
/*
 * The nodes: /dev/npu-ctl0 of the module, /dev/npuN of each card. An open file of a card outlives
 * the card; then its calls give ENODEV and its poll says HUP.
 *
 * The control node has a core of its own with no device behind it, so that VERSION and DISCOVER are
 * checked by the same rules.
 */
#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kdrv/npu_drv.h"

#define NPU_MINORS (NPU_MAX_DEVICES + 1) /* 0: control */

static dev_t npu_devt;
static struct class *npu_class;
static struct cdev npu_control_cdev;
static struct npu_core *npu_control_core;
static DEFINE_XARRAY_ALLOC(npu_devices);
static atomic64_t npu_clients;

/* ---- a card's node ------------------------------------------------------------------------- */

static int npu_file_open(struct inode *inode, struct file *file)
{
	struct npu_device *ndev = container_of(inode->i_cdev, struct npu_device, cdev);
	struct npu_file *nfile;
	int idx, r;

	if (!npu_device_enter(ndev, &idx))
		return -ENODEV;
	r = -ENOMEM;
	nfile = kzalloc(sizeof(*nfile), GFP_KERNEL_ACCOUNT);
	if (!nfile)
		goto exit;
	nfile->ndev = ndev;
	nfile->client = atomic64_inc_return(&npu_clients);
	init_waitqueue_head(&nfile->wait);
	r = npu_core_file_open(ndev->core, nfile, &nfile->core_file);
	if (r < 0) {
		kfree(nfile);
		goto exit;
	}
	get_device(&ndev->dev);
	mutex_lock(&ndev->obj_lock);
	list_add_tail(&nfile->link, &ndev->files);
	mutex_unlock(&ndev->obj_lock);
	file->private_data = nfile;
	stream_open(inode, file);
exit:
	npu_device_exit(ndev, idx);
	return r;
}

static int npu_file_release(struct inode *inode, struct file *file)
{
	struct npu_file *nfile = file->private_data;
	struct npu_device *ndev = nfile->ndev;
	int idx;

	mutex_lock(&ndev->obj_lock);
	list_del(&nfile->link);
	mutex_unlock(&ndev->obj_lock);
	/* with the card the core and all its files have gone */
	if (npu_device_enter(ndev, &idx)) {
		npu_core_file_close(ndev->core, nfile->core_file, false);
		npu_device_exit(ndev, idx);
	}
	kfree(nfile);
	put_device(&ndev->dev);
	return 0;
}

static long npu_file_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct npu_file *nfile = file->private_data;
	struct npu_device *ndev = nfile->ndev;
	long ret;
	int idx;

	if (!npu_device_enter(ndev, &idx))
		return -ENODEV;
	ret = npu_ioctl_run(ndev, ndev->core, nfile->core_file, cmd, arg);
	npu_device_exit(ndev, idx);
	return ret;
}

/* One record. ready is taken back before the look, so that none is missed. */
static int npu_file_event(struct npu_file *nfile, struct npu_event *event)
{
	int idx, r;

	if (!npu_device_enter(nfile->ndev, &idx))
		return -ENODEV;
	WRITE_ONCE(nfile->ready, false);
	r = npu_core_event_read(nfile->ndev->core, nfile->core_file, event);
	if (r == 0)
		WRITE_ONCE(nfile->ready, true);
	npu_device_exit(nfile->ndev, idx);
	return r;
}

static ssize_t npu_file_read(struct file *file, char __user *buf, size_t bytes, loff_t *offset)
{
	struct npu_file *nfile = file->private_data;
	struct npu_event event;
	size_t done = 0;
	int r;

	if (bytes < sizeof(event))
		return -EINVAL;
	while (bytes - done >= sizeof(event)) {
		r = npu_file_event(nfile, &event);
		if (r == -EAGAIN && !done && !(file->f_flags & O_NONBLOCK)) {
			r = wait_event_interruptible(nfile->wait, READ_ONCE(nfile->ready) ||
						     READ_ONCE(nfile->ndev->gone));
			if (r == 0)
				continue;
		}
		if (r < 0)
			return done ? done : r;
		if (copy_to_user(buf + done, &event, sizeof(event)))
			return done ? done : -EFAULT;
		done += sizeof(event);
	}
	return done;
}

static __poll_t npu_file_poll(struct file *file, poll_table *wait)
{
	struct npu_file *nfile = file->private_data;

	poll_wait(file, &nfile->wait, wait);
	if (READ_ONCE(nfile->ndev->gone))
		return EPOLLIN | EPOLLRDNORM | EPOLLERR | EPOLLHUP;
	return READ_ONCE(nfile->ready) ? EPOLLIN | EPOLLRDNORM : 0;
}

static void npu_file_fdinfo(struct seq_file *m, struct file *file)
{
	npu_fdinfo(m, file->private_data);
}

static const struct file_operations npu_file_fops = {
	.owner = THIS_MODULE,
	.open = npu_file_open,
	.release = npu_file_release,
	.unlocked_ioctl = npu_file_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.read = npu_file_read,
	.poll = npu_file_poll,
	.show_fdinfo = npu_file_fdinfo,
};

int npu_chardev_id_get(struct npu_device *ndev)
{
	u32 id;
	int r = xa_alloc(&npu_devices, &id, ndev, XA_LIMIT(0, NPU_MAX_DEVICES - 1), GFP_KERNEL);

	if (r < 0)
		return r;
	ndev->id = id;
	return 0;
}

void npu_chardev_id_put(struct npu_device *ndev)
{
	xa_erase(&npu_devices, ndev->id);
}

int npu_chardev_add(struct npu_device *ndev)
{
	int r;

	ndev->dev.class = npu_class;
	ndev->dev.devt = MKDEV(MAJOR(npu_devt), MINOR(npu_devt) + 1 + ndev->id);
	r = dev_set_name(&ndev->dev, "npu%d", ndev->id);
	if (r < 0)
		return r;
	cdev_init(&ndev->cdev, &npu_file_fops);
	ndev->cdev.owner = THIS_MODULE;
	r = cdev_device_add(&ndev->cdev, &ndev->dev);
	ndev->added = r == 0;
	return r;
}

void npu_chardev_del(struct npu_device *ndev)
{
	ndev->added = false;
	cdev_device_del(&ndev->cdev, &ndev->dev);
}

/* ---- the control node ---------------------------------------------------------------------- */

void npu_control_discover(struct npu_discover *discover)
{
	struct npu_device *ndev;
	unsigned long id;

	memset(discover->ids, 0, sizeof(discover->ids));
	discover->count = 0;
	xa_lock(&npu_devices);
	xa_for_each(&npu_devices, id, ndev) {
		if (READ_ONCE(ndev->added))
			discover->ids[discover->count++] = id;
	}
	xa_unlock(&npu_devices);
}

static int npu_control_open(struct inode *inode, struct file *file)
{
	struct npu_core_file *core_file;
	int r = npu_core_file_open(npu_control_core, NULL, &core_file);

	if (r < 0)
		return r;
	file->private_data = core_file;
	return stream_open(inode, file);
}

static int npu_control_release(struct inode *inode, struct file *file)
{
	npu_core_file_close(npu_control_core, file->private_data, false);
	return 0;
}

static long npu_control_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	unsigned int nr = _IOC_NR(cmd);

	if (nr != _IOC_NR(NPU_IOCTL_VERSION) && nr != _IOC_NR(NPU_IOCTL_DISCOVER))
		return -ENOTTY;
	return npu_ioctl_run(NULL, npu_control_core, file->private_data, cmd, arg);
}

static const struct file_operations npu_control_fops = {
	.owner = THIS_MODULE,
	.open = npu_control_open,
	.release = npu_control_release,
	.unlocked_ioctl = npu_control_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static int npu_control_admin(void *dev, struct npu_admin_cmd *cmd)
{
	return -EOPNOTSUPP;
}

static DEFINE_MUTEX(npu_control_lock);

static void npu_control_take(void *dev)
{
	mutex_lock(&npu_control_lock);
}

static void npu_control_give(void *dev)
{
	mutex_unlock(&npu_control_lock);
}

static int npu_control_init(void)
{
	struct npu_shim shim = npu_device_shim;
	struct npu_core_config config = {
		.kind = NPU_KIND_PCI,
		.version = "npu.ko " NPU_DRV_VERSION,
		.cores = 1,
		.max_sessions = 1,
	};

	shim.dev = NULL;
	shim.lock = npu_control_take;
	shim.unlock = npu_control_give;
	shim.admin = npu_control_admin;
	shim.log = NULL;
	shim.fd_get = NULL;
	return npu_core_new(&shim, &config, &npu_control_core);
}

/* ---- class and numbers --------------------------------------------------------------------- */

/* The group is udev's to give: npu-dev. */
static char *npu_devnode(NPU_DEVNODE_DEVICE *dev, umode_t *mode)
{
	if (mode)
		*mode = 0660;
	return NULL;
}

int npu_chardev_init(void)
{
	struct device *dev;
	int r;

	r = npu_control_init();
	if (r < 0)
		return r;
	r = alloc_chrdev_region(&npu_devt, 0, NPU_MINORS, NPU_DRV_NAME);
	if (r < 0)
		goto core;
	npu_class = npu_class_create(NPU_DRV_NAME);
	if (IS_ERR(npu_class)) {
		r = PTR_ERR(npu_class);
		goto region;
	}
	npu_class->devnode = npu_devnode;
	cdev_init(&npu_control_cdev, &npu_control_fops);
	npu_control_cdev.owner = THIS_MODULE;
	r = cdev_add(&npu_control_cdev, npu_devt, 1);
	if (r < 0)
		goto class;
	dev = device_create(npu_class, NULL, npu_devt, NULL, "npu-ctl0");
	if (IS_ERR(dev)) {
		r = PTR_ERR(dev);
		goto cdev;
	}
	return 0;
cdev:
	cdev_del(&npu_control_cdev);
class:
	class_destroy(npu_class);
region:
	unregister_chrdev_region(npu_devt, NPU_MINORS);
core:
	npu_core_free(npu_control_core);
	return r;
}

void npu_chardev_exit(void)
{
	device_destroy(npu_class, npu_devt);
	cdev_del(&npu_control_cdev);
	class_destroy(npu_class);
	unregister_chrdev_region(npu_devt, NPU_MINORS);
	npu_core_free(npu_control_core);
	xa_destroy(&npu_devices);
}
