// Package epoch executes a run epoch by epoch, and each epoch several times, as Frost does
// (Veeraraghavan et al., SOSP 2011, sections 3.1 to 3.3): thread-parallel, which makes the
// partial order of its synchronization operations and system calls, and epoch-parallel, from
// the same state under that order by priorities of threads. It compares what the replicas of
// an epoch have written and left in memory.
//
// A Runner has the leading machine, on which thread-parallel replicas are executed, and makes
// the Followers, machines for epoch-parallel ones, which may run at the same time. Package
// frost decides which replicas are executed and which is committed.
//
// Invariants:
//
//  1. The outcome of a replica depends on its checkpoint, its order, its options and the Inputs of clients on
//     the host alone, not on the Follower that has executed it, or when.
//  2. The guest's output to standard output and standard error stays with the replica.
//  3. A checkpoint does not change. Its pages stay in the memory of its machine until it is
//     released.
package epoch
