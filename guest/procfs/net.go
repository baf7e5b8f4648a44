package procfs

// netDir is /proc/PID/net: the loopback interface, and no table of sockets.
var netDir = folder("net",
	fixed("arp", "IP address       HW type     Flags       HW address            Mask     Device\n"),
	fixed("dev", `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
`),
	fixed("if_inet6", "00000000000000000000000000000001 01 80 10 80       lo\n"),
	fixed("route", "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"),
	fixed("tcp", tcpHeader+"                                                     \n"),
	fixed("tcp6", tcp6Header+"\n"),
	fixed("udp", tcpHeader+" ref pointer drops            \n"),
	fixed("udp6", tcp6Header+" ref pointer drops\n"),
	fixed("unix", "Num       RefCount Protocol Flags    Type St Inode Path\n"),
)

const (
	tcpHeader  = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
	tcp6Header = "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
)
