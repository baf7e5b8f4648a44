// Package sock is the guest's sockets: AF_UNIX, TCP and UDP over the loopback
// interface, and as much of AF_NETLINK as the lists of interfaces need. There
// is no other interface; all transfers are immediate, whole and in order.
//
// It knows nothing of descriptors and does not block: EAGAIN says that a call
// cannot go on, and the kernel waits for the queues that it is told of.
//
// Invariants:
//
//  1. A message holds a reference to each open description that it carries,
//     and gives it back when it is received or dropped.
//  2. What a stream or a UNIX socket has sent and nobody has read is bounded by
//     the send buffer, what a datagram socket has received by its receive
//     buffer or the length of its queue.
//  3. Ports are given out in ascending order from the first ephemeral one, so
//     that a run's ports depend on the run alone.
//  4. All state is plain data and reachable from a Stack or a Socket.
package sock
