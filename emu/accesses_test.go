package emu

import "testing"

func TestProbeAccesses(t *testing.T) {
}
