// Package output identifies a program's output to a stream by digest and length.
package output

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// Sum identifies the output to a stream.
type Sum struct {
	SHA256 string `json:"sha256"`
	Bytes  uint64 `json:"bytes"`
}

// Meter is a writer that keeps the Sum of its input.
type Meter struct {
	hash  hash.Hash
	bytes uint64
}

// NewMeter returns a Meter that has been given nothing.
func NewMeter() *Meter { return &Meter{hash: sha256.New()} }

// Write implements io.Writer; it never fails.
func (m *Meter) Write(p []byte) (int, error) {
	m.bytes += uint64(len(p))
	return m.hash.Write(p)
}

// Sum identifies the input so far.
func (m *Meter) Sum() Sum {
	return Sum{SHA256: hex.EncodeToString(m.hash.Sum(nil)), Bytes: m.bytes}
}
