package vfs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// basePaths are the paths of the host that programs of Debian need in order to start
// and to work: programs, libraries, locales, data of programs, and the configuration of
// name lookup, time zones and locales. None of them has the host's users' files,
// secrets or state.
var basePaths = []string{
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
	"/usr/bin", "/usr/sbin", "/usr/games", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32",
	"/usr/libexec", "/usr/include", "/usr/local/bin", "/usr/local/sbin", "/usr/local/lib", "/usr/local/include",

	"/usr/share/aclocal", "/usr/share/autoconf", "/usr/share/awk", "/usr/share/bash-completion", "/usr/share/bison",
	"/usr/share/ca-certificates", "/usr/share/file", "/usr/share/gcc", "/usr/share/gdb", "/usr/share/git-core",
	"/usr/share/i18n", "/usr/share/locale", "/usr/share/locale-langpack",
	"/usr/share/lua", "/usr/share/magic", "/usr/share/mariadb", "/usr/share/mime", "/usr/share/misc", "/usr/share/mysql",
	"/usr/share/nano", "/usr/share/nodejs", "/usr/share/perl",
	"/usr/share/perl5", "/usr/share/postgresql", "/usr/share/pyshared", "/usr/share/python3", "/usr/share/readline", "/usr/share/sysbench", "/usr/share/tabset", "/usr/share/tcltk",
	"/usr/share/terminfo", "/usr/share/vim", "/usr/share/zoneinfo", "/usr/local/share/perl",

	"/etc/alternatives", "/etc/bash.bashrc", "/etc/bash_completion.d", "/etc/debian_version",
	"/etc/default/locale", "/etc/environment", "/etc/gai.conf", "/etc/group", "/etc/host.conf",
	"/etc/hostname", "/etc/hosts", "/etc/inputrc", "/etc/issue", "/etc/java-11-openjdk",
	"/etc/java-17-openjdk", "/etc/java-21-openjdk", "/etc/java-25-openjdk", "/etc/ld.so.cache", "/etc/ld.so.conf",
	"/etc/ld.so.conf.d", "/etc/locale.alias", "/etc/locale.conf", "/etc/locale.gen", "/etc/localtime",
	"/etc/magic", "/etc/magic.mime", "/etc/mime.types", "/etc/mtab", "/etc/networks", "/etc/nsswitch.conf",
	"/etc/os-release", "/etc/passwd", "/etc/perl", "/etc/profile", "/etc/profile.d", "/etc/protocols",
	"/etc/python3", "/etc/python3.11", "/etc/python3.12", "/etc/python3.13", "/etc/resolv.conf", "/etc/rpc", "/etc/services",
	"/etc/shells", "/etc/skel", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/terminfo", "/etc/timezone",
}

// NamedPaths lists the files and folders of the host that a program's arguments name and that the guest sees for that reason:
// those with a slash that exist and are not visible otherwise, also behind the first "=" of an argument (if=/data/in, --input=/data/in). Relative ones are
// taken from dir. A folder that is or holds one that the guest has otherwise, such as /, /etc, /tmp, home or dir, is left out: it
// shows no more than without an argument.
func NamedPaths(args []string, dir, home string) []string {
	paths, known := []string{}, map[string]bool{}
	isVisible := func(name string) bool {
		return isWithin(name, dir) || slices.ContainsFunc(basePaths, func(base string) bool { return isWithin(name, base) })
	}
	for _, arg := range args {
		_, value, _ := strings.Cut(arg, "=")
		for _, name := range []string{arg, value} {
			if !strings.Contains(name, "/") {
				continue
			}
			if !filepath.IsAbs(name) {
				name = filepath.Join(dir, name)
			}
			name = filepath.Clean(name)
			if known[name] || isVisible(name) || holdsGuestFolder(name, dir, home) {
				continue
			}
			known[name] = true
			if _, err := os.Stat(name); err == nil {
				paths = append(paths, name)
			}
		}
	}
	return paths
}

// holdsGuestFolder reports whether a clean absolute path of the host is, or holds, a folder that the guest has otherwise, or
// lies in /proc, /sys or /dev.
func holdsGuestFolder(name, dir, home string) bool {
	folders := slices.Concat(basePaths, []string{dir, home})
	for _, s := range scratchFolders {
		folders = append(folders, s.path)
	}
	for _, own := range ownFolders {
		if isWithin(name, "/"+own) {
			return true
		}
	}
	return slices.ContainsFunc(folders, func(folder string) bool { return isWithin(folder, name) })
}

// DefaultPaths lists the paths of the host that a program sees unless another root is
// given: basePaths, the program itself and the current folder. program is a path of the
// host or a plain name, which is found in a folder of programs; dir is an absolute
// path.
func DefaultPaths(program, dir string) []string {
	paths := append([]string{}, basePaths...)
	if filepath.Base(program) != program {
		if !filepath.IsAbs(program) {
			program = filepath.Join(dir, program)
		}
		paths = append(paths, program)
	}
	return append(paths, dir)
}
