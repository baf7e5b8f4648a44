// Package windows runs a server in windows of requests: it connects the state machine of
// sched/windows to a machine, its sockets and its threads, and reports what the windows cost
// (docs/windows.md).
package windows
