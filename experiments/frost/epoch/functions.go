package epoch

import (
	"github.com/zeebo/xxh3"

	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/syncops"
	"github.com/heddle-dmt/heddle/sched/partialorder"
)

// functions that lock for themselves, by the objects that they act on.
var (
	allocating = []string{
		"__libc_thread_freeres", "__malloc_arena_thread_freeres", "__nptl_free_tcb", "__nptl_deallocate_stack",
		"malloc", "calloc", "realloc", "reallocarray", "memalign", "aligned_alloc", "posix_memalign", "valloc", "pvalloc",
		"free", "cfree", "malloc_trim", "mallinfo", "mallinfo2", "malloc_usable_size",
	}
	streaming = []string{
		"printf", "vprintf", "fprintf", "vfprintf", "dprintf", "vdprintf", "__printf_chk", "__fprintf_chk",
		"__vprintf_chk", "__vfprintf_chk", "puts", "fputs", "fputc", "putc", "putchar", "fwrite", "fflush", "fopen",
		"fopen64", "fdopen", "freopen", "fclose", "perror", "getc", "fgetc", "getchar", "ungetc", "fgets", "fread",
		"getline", "getdelim", "scanf", "fscanf", "vfscanf", "fseek", "fseeko", "ftell", "ftello", "rewind", "setvbuf",
		"opendir", "readdir", "closedir",
	}
)

// libraryFunctions are those functions as operations.
func libraryFunctions() (list []syncops.Custom) {
	for _, names := range [][]string{allocating, streaming} {
		for _, name := range names {
			list = append(list, syncops.Custom{Name: name, Effect: syncops.NoEffect})
		}
	}
	return list
}

func sharedFunctions() *partialorder.Functions {
	s := &partialorder.Functions{}
	for _, name := range allocating {
		s.Memory = append(s.Memory, functionID(name))
	}
	for _, name := range streaming {
		s.Files = append(s.Files, functionID(name))
	}
	return s
}

// functionID is the object of an operation that is on none but its function
// (docs/sync.md).
func functionID(name string) event.ObjectID {
	return event.ObjectID(xxh3.HashString("function:" + name))
}
