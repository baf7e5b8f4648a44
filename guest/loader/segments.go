package loader

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
)

// mapProgram maps the program's segments, places the heap after them, and
// returns the bias.
func (l *loading) mapProgram(p *program) (arch.Addr, error) {
	low, _ := p.pageSpan()
	base, flags := arch.Addr(low), unix.MAP_FIXED_NOREPLACE
	ownHeap := false
	if p.typ == typeDynamic {
		base = (pieBase + l.randomOffset(mapRoom*arch.PageSize)) &^ (p.alignment() - 1)
		if p.interpreter == "" && p.alignment() == arch.PageSize {
			// A dynamic linker that is run as a program must leave the usual
			// place to the program that it will map, and room for the heap.
			base, flags, ownHeap = 0, 0, true
		}
	}
	bias, err := l.mapSegments(p, base, flags)
	if err != nil {
		return 0, err
	}
	layout := &l.as.Layout
	layout.StartCode = mm.TaskSize
	var end uint64
	for _, s := range p.loads {
		start, fileEnd := bias+arch.Addr(s.addr), bias+arch.Addr(s.addr+s.fileSize)
		if s.flags&flagExec != 0 {
			layout.StartCode = min(layout.StartCode, start)
			layout.EndCode = max(layout.EndCode, fileEnd)
		}
		layout.StartData = max(layout.StartData, start)
		layout.EndData = max(layout.EndData, fileEnd)
		end = max(end, s.end())
	}
	heap := bias + arch.Addr(pageAlign(end))
	if ownHeap {
		heap = pieBase + arch.PageSize
	}
	l.as.SetBrk(heap + l.randomOffset(brkRoom))
	return bias, nil
}

// alignment is the largest alignment that a segment requests, at least a page.
func (h *header) alignment() arch.Addr {
	largest := uint64(arch.PageSize)
	for _, s := range h.loads {
		if s.align&(s.align-1) == 0 && s.align < 1<<40 {
			largest = max(largest, s.align)
		}
	}
	return arch.Addr(largest)
}

// mapLinker maps the dynamic linker where mmap would place it.
func (l *loading) mapLinker(p *program) (arch.Addr, error) {
	return l.mapSegments(p, 0, 0)
}

// mapSegments maps the segments to load with their first page at base, or at a free
// address if flags do not fix it, and returns the bias that is added to the addresses
// in the file.
func (l *loading) mapSegments(p *program, base arch.Addr, flags int) (arch.Addr, error) {
	low, high := p.pageSpan()
	// Reserve the whole range first, so that it is contiguous.
	base, errno := l.as.Mmap(mm.MapRequest{
		Addr: base, Length: high - low, Prot: unix.PROT_NONE,
		Flags: unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE | flags,
	})
	if errno != 0 {
		return 0, noRoomError(p.path, errno)
	}
	bias := base - arch.Addr(low)
	at := low // end of the mapped part
	for _, s := range p.loads {
		if start := s.addr &^ (arch.PageSize - 1); start > at {
			l.as.Munmap(bias+arch.Addr(at), start-at)
		}
		if errno := l.mapSegment(p.file, &s, bias); errno != 0 {
			return 0, noRoomError(p.path, errno)
		}
		at = pageAlign(s.end())
	}
	return bias, nil
}

func noRoomError(path string, errno unix.Errno) error {
	return newError(unix.ENOMEM, errNoRoom.Wrap(errno, path))
}

// protection are those of a segment for mmap.
func (s *segment) protection() int {
	prot := 0
	for _, r := range [...]struct {
		flag uint32
		prot int
	}{{flagRead, unix.PROT_READ}, {flagWrite, unix.PROT_WRITE}, {flagExec, unix.PROT_EXEC}} {
		if s.flags&r.flag != 0 {
			prot |= r.prot
		}
	}
	return prot
}

// mapSegment maps the content that the file has of a segment, and zeros for the rest.
func (l *loading) mapSegment(f File, s *segment, bias arch.Addr) unix.Errno {
	inPage := s.addr % arch.PageSize
	start := s.addr - inPage
	end := start
	if s.fileSize > 0 {
		end = pageAlign(s.addr + s.fileSize)
		if _, errno := l.as.Mmap(mm.MapRequest{
			Addr: bias + arch.Addr(start), Length: end - start, Prot: s.protection(),
			Flags:  unix.MAP_PRIVATE | unix.MAP_FIXED,
			Object: f.Object(), Offset: s.offset - inPage, File: f.MapFile(), Readable: true,
		}); errno != 0 {
			return errno
		}
	}
	if s.memSize == s.fileSize {
		return 0
	}
	// The whole rest of the page is cleared: ld.so allocates memory after its .bss. A
	// page that the program may not write cannot be; Linux leaves it as it is.
	if fileEnd := s.addr + s.fileSize; fileEnd < end && s.flags&flagWrite != 0 {
		if errno := l.as.Zero(bias+arch.Addr(fileEnd), end-fileEnd); errno != 0 {
			return unix.ENOMEM
		}
	}
	if pageAlign(s.end()) <= end {
		return 0
	}
	_, errno := l.as.Mmap(mm.MapRequest{
		Addr: bias + arch.Addr(end), Length: pageAlign(s.end()) - end,
		Prot:  unix.PROT_READ | unix.PROT_WRITE | s.protection()&unix.PROT_EXEC,
		Flags: unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED,
	})
	return errno
}
