// Package malloc finds the pieces of memory that glibc's allocator has given out.
package malloc

import "encoding/binary"

// Piece is memory that was given out.
type Piece struct{ Addr, Size uint64 }

// Peek reads memory at an address and returns how many bytes of it there are.
type Peek func(addr uint64, b []byte) int

// header is the size of the header of a chunk: the size of the preceding chunk, if that is free, and
// its own size with three flags in the lowest bits (malloc.c, struct malloc_chunk).
const header = 16

// Pieces are the pieces, by address, of a mapping from start to below end, if it is a heap: from one
// header to the next, up to the mapping's end. Memory before the first header does not belong to the
// allocator.
func Pieces(peek Peek, start, end uint64) []Piece {
	const within = 1 << 16
	var all []Piece
	for at := start; at < min(end, start+within) && len(all) == 0; at += header {
		all = chain(peek, at, end)
	}
	return all
}

// chain are the pieces from a header on, if they end where they should, and there are several.
func chain(peek Peek, at, end uint64) []Piece {
	var all []Piece
	for at < end {
		size, ok := chunkSize(peek, at)
		if !ok {
			return nil
		}
		all = append(all, Piece{at + header, size - header/2})
		at += size
	}
	if at != end || len(all) < 2 {
		return nil
	}
	return all
}

// chunkSize reads the size in the header at an address.
func chunkSize(peek Peek, at uint64) (size uint64, ok bool) {
	const flags, least, most = 7, 32, 1 << 26
	var b [8]byte
	if peek(at+header/2, b[:]) < len(b) {
		return 0, false
	}
	size = binary.LittleEndian.Uint64(b[:]) &^ flags
	return size, size >= least && size <= most && size%header == 0
}
