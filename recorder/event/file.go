package event

// File is a piece of a file of the host that the run has read: the pieces of a file follow each other.
type File struct {
	Stamp
	// Name is the path on the host, and Size the number of bytes of the whole file.
	Name string `json:"name"`
	Size uint64 `json:"size"`
	// Mode, UID, GID and Links are as of stat(2), and so are the times, as the guest sees them, in ns since 1970.
	Mode     uint32 `json:"mode"`
	UID      uint32 `json:"uid"`
	GID      uint32 `json:"gid"`
	Links    uint32 `json:"links"`
	Accessed int64  `json:"accessed"`
	Modified int64  `json:"modified"`
	Changed  int64  `json:"changed"`
	// Data are the next bytes.
	Data []byte `json:"data"`
}
