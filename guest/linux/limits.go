package linux

// Limits of inotify(7), as /proc/sys/fs/inotify shows them.
const (
	InotifyMaxQueuedEvents  = 16384 // of an instance
	InotifyMaxUserInstances = 128
	InotifyMaxUserWatches   = 65536
)

// Limits of POSIX message queues without privileges, as /proc/sys/fs/mqueue shows them
// (mq_overview(7)).
const (
	MqueueMaxQueues       = 256
	MqueueMaxMessages     = 10
	MqueueMaxSize         = 8192 // of a message, in bytes
	MqueueDefaultMessages = 10
	MqueueDefaultSize     = 8192
)
