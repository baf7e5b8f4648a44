package vfs

import "github.com/heddle-dmt/heddle/internal/errs"

var (
	errRoot = errs.Define("rootfs-unusable",
		"cannot use {folder} as the guest's root",
		"The folder of --rootfs does not exist, cannot be opened or is no folder.",
		"Name an existing folder that holds a root file system, such as debootstrap makes.")
	errMountPath = errs.Define("mount-guest-path",
		"cannot mount {host}: the guest path {guest} is not absolute",
		"The part of --mount behind the colon does not begin with a slash.",
		"Give the guest path in full, for example --mount data:/data.")
	errMountOpen = errs.Define("mount-unusable",
		"cannot mount {host} at {guest}",
		"The folder or file that --mount names does not exist or cannot be opened.",
		"Check the path before the colon and its permissions.")
	errMountKind = errs.Define("mount-kind",
		"cannot mount {host} at {guest}: only folders and regular files can be mounted, and only a folder at /",
		"The option --mount names a device, a pipe or a socket, or a file for the guest's root.",
		"Mount the folder that the program needs.")
	errMountOwn = errs.Define("mount-over-own",
		"cannot mount {host} at {guest}: /proc, /sys and /dev are the guest's own",
		"The guest path of --mount is /proc, /sys, /dev or below one of them.",
		"Mount the folder somewhere else.")
	errMountOverlap = errs.Define("mounts-overlap",
		"cannot mount {host} at {guest}: {other} is mounted writable at {otherguest} and holds the same files",
		"Two writable mounts would write different changes to the same files of the host.",
		"Make one of the two read-only by leaving out :rw, or mount only the outer folder.")
	errChanged = errs.Define("host-file-changed",
		"the host's file {path} changed while the guest could see it",
		"Another program put another file or link in its place after the guest had found it and before the guest opened it, or wrote to a file of more than 4 MiB that the guest had opened and read again: the run's result would depend on more than its inputs. A smaller file that was opened may be written to, and any may be replaced.",
		"Run again while nothing else writes to the file, or mount a copy.")
	errRead = errs.Define("input-unreadable",
		"cannot read the host's file {path}",
		"The host failed when it read a file for the guest; the rest of the sentence says how.",
		"Check the disk and the file's permissions, and run again.")
	errDescriptors = errs.Define("too-few-descriptors",
		"the host's limit on open files is too low to open {path}",
		"The limit of this process (ulimit -n), or that of the whole host, leaves heddle no descriptor for a file that the guest reads, though it has closed all others.",
		"Raise the limit with ulimit -n and run again; the guest's own limit does not depend on it.")
	errMoved = errs.Define("mount-moved",
		"{host} is not what was mounted at {guest} any more; the changes were written to what was, which is now {now}",
		"Another program moved the folder or file, or put something else or a link in its place, while the guest ran. heddle writes back to what it mounted, and follows no link.",
		"Take the changes from there, and leave the folder where it is while the guest runs.")
	errCommit = errs.Define("mount-write-back",
		"cannot write the changes below {guest} back to {host}",
		"The host refused a change at the end of the run: no permission, no space, or a path in the way.",
		"Make the folder writable; changes whose paths sort before the named one are done.")
	errExport = errs.Define("export-failed",
		"cannot export changed files to {folder}",
		"The folder of --export cannot be made, or the host refused to write into it.",
		"Name a new or empty folder on a disk with enough space.")
)
