// Package rand has the project's random numbers: seeded sequences that are plain data, so that
// a copy of a machine's state draws the same numbers as the original, and that are the same on
// every host, since all arithmetic is on integers.
//
// SplitMix is the small generator for choices of equal weight. Stream is the generator of the
// scheduling policies, with the distributions that they need; a Share is a probability or a
// part of a whole as an integer.
//
// Recorded runs, litmus tests and searches depend on every number that is drawn: a change of a
// sequence changes their results. The tests hold the sequences to published values.
package rand
