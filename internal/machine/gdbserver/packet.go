package gdbserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// maxPacket bounds a packet; GDB gets it as the length of the longest one that it may send.
const maxPacket = 1 << 16

// interrupt is the byte that GDB sends, outside of any packet, to stop a run.
const interrupt = 0x03

var errPacket = errors.New("the packet is longer than it may be")

// wire is a connection as packets.
type wire struct {
	r    *bufio.Reader
	w    io.Writer
	acks bool
}

// readPacket reads the next packet, or the interrupt byte alone. Packets with a wrong
// checksum are requested again.
func (c *wire) readPacket() (string, error) {
	for {
		b, err := c.r.ReadByte()
		if err != nil {
			return "", err
		}
		switch b {
		case interrupt:
			return string(rune(interrupt)), nil
		case '$':
			body, ok, err := c.readBody()
			if err != nil {
				return "", err
			}
			if !c.acks {
				return body, nil
			}
			if err := c.acknowledge(ok); err != nil {
				return "", err
			}
			if ok {
				return body, nil
			}
		}
	}
}

// readBody reads a packet after the dollar sign, and returns whether its checksum is right.
func (c *wire) readBody() (string, bool, error) {
	var body []byte
	sum := byte(0)
	for {
		b, err := c.r.ReadByte()
		if err != nil {
			return "", false, err
		}
		if b == '#' {
			break
		}
		sum += b
		if b == '}' {
			if b, err = c.r.ReadByte(); err != nil {
				return "", false, err
			}
			sum += b
			b ^= 0x20
		}
		if body = append(body, b); len(body) > maxPacket {
			return "", false, errPacket
		}
	}
	var digits [2]byte
	if _, err := io.ReadFull(c.r, digits[:]); err != nil {
		return "", false, err
	}
	return string(body), fmt.Sprintf("%02x", sum) == string(digits[:]), nil
}

func (c *wire) acknowledge(ok bool) error {
	answer := "+"
	if !ok {
		answer = "-"
	}
	_, err := io.WriteString(c.w, answer)
	return err
}

// writePacket sends a packet.
func (c *wire) writePacket(body string) error {
	out := []byte{'$'}
	sum := byte(0)
	for i := range len(body) {
		b := body[i]
		if b == '$' || b == '#' || b == '}' || b == '*' {
			out = append(out, '}')
			sum += '}'
			b ^= 0x20
		}
		out = append(out, b)
		sum += b
	}
	_, err := c.w.Write(fmt.Appendf(out, "#%02x", sum))
	return err
}
