package find

import (
	"io"
	"sync"
)

// sharedInput is standard input that every run reads from its beginning. It reads from the host when a
// run needs bytes that no run had before.
type sharedInput struct {
	from io.Reader

	mu   sync.Mutex
	read []byte
	err  error // the end
}

// reader makes the standard input of a run.
func (s *sharedInput) reader() io.Reader { return &inputReader{input: s} }

// inputReader is the position of a run.
type inputReader struct {
	input *sharedInput
	at    int
}

// Read implements io.Reader.
func (r *inputReader) Read(p []byte) (int, error) {
	s := r.input
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.at == len(s.read) && s.err == nil {
		buffer := make([]byte, max(1, len(p)))
		n, err := s.from.Read(buffer)
		s.read, s.err = append(s.read, buffer[:n]...), err
	}
	n := copy(p, s.read[r.at:])
	r.at += n
	if n == 0 {
		return 0, s.err
	}
	return n, nil
}
