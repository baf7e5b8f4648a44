package procfs

// netDir is /proc/PID/net: the loopback interface, and no table of sockets.
var netDir = fixedFolder("net",
	constantFile("arp", "IP address       HW type     Flags       HW address            Mask     Device\n"),
	constantFile("dev", `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
`),
	constantFile("if_inet6", "00000000000000000000000000000001 01 80 10 80       lo\n"),
	constantFile("route", "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"),
	constantFile("tcp", tcpHeader+"                                                     \n"),
	constantFile("tcp6", tcp6Header+"\n"),
	constantFile("udp", tcpHeader+" ref pointer drops            \n"),
	constantFile("udp6", tcp6Header+" ref pointer drops\n"),
	constantFile("unix", "Num       RefCount Protocol Flags    Type St Inode Path\n"),
)

const (
	tcpHeader  = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
	tcp6Header = "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
)
