// Package windows cuts the run of a server into windows (Cui, Wu, Tsai and Yang, Stable deterministic
// multithreading through schedule memoization, OSDI 2010, section 6): requests are admitted at fixed
// points, processed, and the server quiesces before the next window.
//
// Engine decides when a window begins and ends and which input is admitted. It sees server and
// clients as a World, which tests script and the machine implements. Controller orders the server's
// threads within a window: it records the order of their synchronization operations and system
// calls, and has a window with the same key follow the order that was recorded first.
//
// Invariants:
//
//  1. Outside of windows no thread of the server can run, unless it was woken by something that the
//     World does not hold back; then a window of the cause Other begins.
//  2. A window ends when no thread of the server can run and no task of the window is open, or
//     nothing that could end the tasks can happen within the timeout.
//  3. Which input a window admits depends on the input that waits when no thread of the machine can
//     run, not on the order in which it arrived, unless the timeout passes while clients run.
//  4. Nothing depends on the order of a map or on the host.
package windows
