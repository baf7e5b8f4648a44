// Package sock is the guest's sockets: AF_UNIX, TCP and UDP over the loopback
// interface, and as much of AF_NETLINK as the lists of interfaces need. There
// is no other interface; all transfers are immediate, whole and in order.
//
// It has no knowledge of descriptors and does not block: EAGAIN says that a call cannot
// complete now, and the kernel waits for the queues that it is given.
//
// Invariants:
//
//  1. A message holds a reference to each open description that it carries,
//     and drops it when it is received or discarded.
//  2. The unread data that a stream or a UNIX socket has sent is bounded by
//     the send buffer, the data that a datagram socket has received by its
//     receive buffer or the length of its queue.
//  3. Ports are allocated in ascending order from the first ephemeral one, so
//     that a run's ports depend on the run alone.
//  4. All state is plain data and reachable from a Stack or a Socket.
package sock
