package loader

import (
	"testing"
)

func TestLoadDynamicProgram(t *testing.T) {
	as := newSpace(t)
	image, err := Load(as, &opener{ram: as.RAM()}, "/bin/true", []string{"true"}, []string{"A=B"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if image.Program.Bias != pieBase || image.Linker.Path == "" || image.Entry < image.Linker.Bias {
		t.Errorf("image %+v", image)
	}
	if argc, errno := as.ReadU64(image.StackPointer); argc != 1 || errno != 0 {
		t.Errorf("argc is %d: %v", argc, errno)
	}
	t.Log("\n" + as.Maps())
}
