package loader

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// mapProgram maps the program's segments, places the heap after them, and
// returns the bias.
func (l *load) mapProgram(p *program) (event.Addr, error) {
	low, _ := p.span()
	base, flags := event.Addr(low), unix.MAP_FIXED_NOREPLACE
	ownHeap := false
	if p.typ == typeDynamic {
		base = (pieBase + l.pages(mapRoom*emu.PageSize)) &^ (p.alignment() - 1)
		if p.interpreter == "" && p.alignment() == emu.PageSize {
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
		start, fileEnd := bias+event.Addr(s.addr), bias+event.Addr(s.addr+s.fileSize)
		if s.flags&flagExec != 0 {
			layout.StartCode = min(layout.StartCode, start)
			layout.EndCode = max(layout.EndCode, fileEnd)
		}
		layout.StartData = max(layout.StartData, start)
		layout.EndData = max(layout.EndData, fileEnd)
		end = max(end, s.end())
	}
	heap := bias + event.Addr(pageAlign(end))
	if ownHeap {
		heap = pieBase + emu.PageSize
	}
	l.as.SetBrk(heap + l.pages(brkRoom))
	return bias, nil
}

// alignment is the largest that a segment asks for, at least a page.
func (h *header) alignment() event.Addr {
	largest := uint64(emu.PageSize)
	for _, s := range h.loads {
		if s.align&(s.align-1) == 0 && s.align < 1<<40 {
			largest = max(largest, s.align)
		}
	}
	return event.Addr(largest)
}

// mapLinker maps the dynamic linker where mmap would place it.
func (l *load) mapLinker(p *program) (event.Addr, error) {
	return l.mapSegments(p, 0, 0)
}

// mapSegments maps the segments to load with their first page at base, or where
// there is room if flags do not fix it, and returns what is added to the
// addresses in the file.
func (l *load) mapSegments(p *program, base event.Addr, flags int) (event.Addr, error) {
	low, high := p.span()
	// Reserve the whole range first, so that it is in one piece.
	base, errno := l.as.Mmap(mm.MapRequest{
		Addr: base, Length: high - low, Prot: unix.PROT_NONE,
		Flags: unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE | flags,
	})
	if errno != 0 {
		return 0, noRoom(p.path, errno)
	}
	bias := base - event.Addr(low)
	at := low // what is mapped ends here
	for _, s := range p.loads {
		if start := s.addr &^ (emu.PageSize - 1); start > at {
			l.as.Munmap(bias+event.Addr(at), start-at)
		}
		if errno := l.mapSegment(p.file, &s, bias); errno != 0 {
			return 0, noRoom(p.path, errno)
		}
		at = pageAlign(s.end())
	}
	return bias, nil
}

func noRoom(path string, errno unix.Errno) error {
	return fail(unix.ENOMEM, errNoRoom.Wrap(errno, path))
}

// rights are those of a segment for mmap.
func (s *segment) rights() int {
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

// mapSegment maps what the file has of a segment, and zeros for the rest.
func (l *load) mapSegment(f File, s *segment, bias event.Addr) unix.Errno {
	inPage := s.addr % emu.PageSize
	start := s.addr - inPage
	end := start
	if s.fileSize > 0 {
		end = pageAlign(s.addr + s.fileSize)
		if _, errno := l.as.Mmap(mm.MapRequest{
			Addr: bias + event.Addr(start), Length: end - start, Prot: s.rights(),
			Flags:  unix.MAP_PRIVATE | unix.MAP_FIXED,
			Object: f.Object(), Offset: s.offset - inPage, File: f.MapFile(), Readable: true,
		}); errno != 0 {
			return errno
		}
	}
	if s.memSize == s.fileSize {
		return 0
	}
	// The whole rest of the page is cleared: ld.so allocates behind its .bss. A
	// page that the program may not write cannot be; Linux leaves it as it is.
	if fileEnd := s.addr + s.fileSize; fileEnd < end && s.flags&flagWrite != 0 {
		if errno := l.as.Zero(bias+event.Addr(fileEnd), end-fileEnd); errno != 0 {
			return unix.ENOMEM
		}
	}
	if pageAlign(s.end()) <= end {
		return 0
	}
	_, errno := l.as.Mmap(mm.MapRequest{
		Addr: bias + event.Addr(end), Length: pageAlign(s.end()) - end,
		Prot:  unix.PROT_READ | unix.PROT_WRITE | s.rights()&unix.PROT_EXEC,
		Flags: unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED,
	})
	return errno
}
