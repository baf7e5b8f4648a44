// POSIX asynchronous I/O of glibc, which uses threads: read, write, suspend, lio_listio, cancel, notification by signal and thread.
// link: -lrt
#include "conformance.h"

#include <aio.h>

static atomic_int noticed, signalled;

static void on_thread(union sigval v)
{
	noticed += v.sival_int;
}

static void on_sig(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	signalled += si->si_value.sival_int;
}

static ssize_t complete(struct aiocb *cb)
{
	const struct aiocb *list[] = {cb};
	while (aio_error(cb) == EINPROGRESS)
		if (aio_suspend(list, 1, NULL) != 0)
			CHECK(errno == EINTR);
	int e = aio_error(cb);
	ssize_t r = aio_return(cb);
	if (r < 0)
		errno = e;
	return r;
}

int main(void)
{
	int fd = open("file", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0);
	char in[4][10], out[4][10];
	struct aiocb cb[4] = {0}, *list[4];
	for (int i = 0; i < LEN(cb); i++) {
		memset(out[i], 'a' + i, 10);
		cb[i] = (struct aiocb){.aio_fildes = fd, .aio_buf = out[i], .aio_nbytes = 10, .aio_offset = i * 10};
		cb[i].aio_lio_opcode = LIO_WRITE;
		list[i] = &cb[i];
	}
	SHOW(lio_listio(LIO_WAIT, list, LEN(list), NULL));
	for (int i = 0; i < LEN(cb); i++)
		SHOW(complete(&cb[i]));
	for (int i = 0; i < LEN(cb); i++) {
		cb[i] = (struct aiocb){.aio_fildes = fd, .aio_buf = in[i], .aio_nbytes = 10, .aio_offset = (3 - i) * 10};
		SHOW(aio_read(&cb[i]));
	}
	for (int i = 0; i < LEN(cb); i++) {
		CHECK(complete(&cb[i]) == 10);
		printf("%.10s\n", in[i]);
	}

	on_siginfo(SIGUSR1, on_sig, SA_RESTART);
	cb[0] = (struct aiocb){.aio_fildes = fd, .aio_buf = in[0], .aio_nbytes = 5};
	cb[0].aio_sigevent = (struct sigevent){.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_thread,
					       .sigev_value.sival_int = 7};
	cb[1] = (struct aiocb){.aio_fildes = fd, .aio_buf = in[1], .aio_nbytes = 5, .aio_offset = 38};
	cb[1].aio_sigevent = (struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1,
					       .sigev_value.sival_int = 9};
	CHECK(aio_read(&cb[0]) == 0 && aio_read(&cb[1]) == 0);
	while (noticed == 0 || signalled == 0)
		nap();
	printf("thread %d, signal %d\n", noticed, signalled);
	SHOW(complete(&cb[0]));
	SHOW(complete(&cb[1]));

	cb[2] = (struct aiocb){.aio_fildes = 999, .aio_buf = in[2], .aio_nbytes = 5};
	CHECK(aio_read(&cb[2]) == 0 || errno == EBADF);
	SHOW(complete(&cb[2]));
	cb[3] = (struct aiocb){.aio_fildes = fd};
	SHOW(aio_fsync(O_SYNC, &cb[3]));
	SHOW(complete(&cb[3]));
	printf("nothing to cancel: %d\n", aio_cancel(fd, NULL) == AIO_ALLDONE);
	return 0;
}
