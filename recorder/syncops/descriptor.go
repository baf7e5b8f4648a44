package syncops

// ThreadDescriptorSize is the size of glibc's struct pthread (descr.h), at which the FS base
// of a thread points, in bytes.
const ThreadDescriptorSize = 0x900
