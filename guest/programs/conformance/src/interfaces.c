// The loopback interface as reported by ioctls, netlink, getifaddrs and the name functions.
// static: no (name look-up loads libraries)
#include "inet.h"

#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/ioctl.h>

static void ioctls(void)
{
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq r;
	struct sockaddr_in *a = (struct sockaddr_in *)&r.ifr_addr;
	memset(&r, 0, sizeof r);
	strcpy(r.ifr_name, "lo");
	SHOW(ioctl(s, SIOCGIFINDEX, &r));
	printf("index %d\n", r.ifr_ifindex);
	SHOW(ioctl(s, SIOCGIFFLAGS, &r));
	printf("flags %x\n", r.ifr_flags & (IFF_UP | IFF_LOOPBACK | IFF_RUNNING | IFF_BROADCAST | IFF_MULTICAST));
	SHOW(ioctl(s, SIOCGIFADDR, &r));
	printf("%d %s\n", a->sin_family, inet_ntoa(a->sin_addr));
	SHOW(ioctl(s, SIOCGIFNETMASK, &r));
	printf("%d %s\n", a->sin_family, inet_ntoa(a->sin_addr));
	SHOW(ioctl(s, SIOCGIFMTU, &r));
	printf("mtu %d\n", r.ifr_mtu);
	SHOW(ioctl(s, SIOCGIFHWADDR, &r));
	printf("hardware %d %d\n", r.ifr_hwaddr.sa_family, r.ifr_hwaddr.sa_data[0]);
	SHOW(ioctl(s, SIOCGIFMETRIC, &r));
	SHOW(ioctl(s, SIOCGIFTXQLEN, &r));
	r.ifr_ifindex = 1;
	SHOW(ioctl(s, SIOCGIFNAME, &r));
	puts(r.ifr_name);
	strcpy(r.ifr_name, "none");
	SHOW(ioctl(s, SIOCGIFINDEX, &r));
	SHOW(ioctl(s, SIOCGIFADDR, &r));
	SHOW(ioctl(s, SIOCGIFADDR, (void *)1));
	strcpy(r.ifr_name, "lo");
	SHOW(ioctl(socket(AF_UNIX, SOCK_STREAM, 0), SIOCGIFINDEX, &r));
	char buf[4096];
	struct ifconf c = {.ifc_len = sizeof buf, .ifc_buf = buf};
	SHOW(ioctl(s, SIOCGIFCONF, &c));
	for (int i = 0; i < c.ifc_len / (int)sizeof r; i++)
		if (strcmp(c.ifc_req[i].ifr_name, "lo") == 0)
			puts("SIOCGIFCONF has lo");
}

static void names(void)
{
	char name[IF_NAMESIZE] = "";
	SHOW(if_nametoindex("lo"));
	SHOW(if_nametoindex("none"));
	SHOW(if_indextoname(1, name) != NULL);
	puts(name);
	SHOW(if_indextoname(7777, name) != NULL);
	struct if_nameindex *list = if_nameindex();
	CHECK(list);
	for (int i = 0; list[i].if_index; i++)
		if (strcmp(list[i].if_name, "lo") == 0)
			printf("if_nameindex has lo as %u\n", list[i].if_index);
	if_freenameindex(list);
}

static void addresses(void)
{
	struct ifaddrs *list;
	CHECK(getifaddrs(&list) == 0);
	for (struct ifaddrs *i = list; i; i = i->ifa_next) {
		char a[INET6_ADDRSTRLEN] = "", m[INET6_ADDRSTRLEN] = "";
		if (strcmp(i->ifa_name, "lo") != 0)
			continue;
		int f = i->ifa_addr ? i->ifa_addr->sa_family : -1;
		if (f == AF_INET) {
			inet_ntop(f, &((struct sockaddr_in *)i->ifa_addr)->sin_addr, a, sizeof a);
			inet_ntop(f, &((struct sockaddr_in *)i->ifa_netmask)->sin_addr, m, sizeof m);
		} else if (f == AF_INET6) {
			inet_ntop(f, &((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr, a, sizeof a);
			inet_ntop(f, &((struct sockaddr_in6 *)i->ifa_netmask)->sin6_addr, m, sizeof m);
		}
		printf("family %d %s %s up %d loopback %d\n", f, a, m, !!(i->ifa_flags & IFF_UP), !!(i->ifa_flags & IFF_LOOPBACK));
	}
	freeifaddrs(list);
}

static void lookups(void)
{
	static const char *const hosts[] = {"127.0.0.1", "::1", "localhost", "", "0.0.0.0"};
	for (int i = 0; i < LEN(hosts); i++)
		for (int flags = 0; flags < 2; flags++) {
			struct addrinfo hint = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | (flags ? AI_ADDRCONFIG : AI_PASSIVE)};
			struct addrinfo *list = NULL;
			if (i == 2)
				hint.ai_family = AF_INET, hint.ai_flags &= ~AI_ADDRCONFIG; // which asks for more than loopback
			int r = getaddrinfo(*hosts[i] ? hosts[i] : NULL, "80", &hint, &list);
			printf("'%s' %d: %s", hosts[i], flags, r ? gai_strerror(r) : "");
			for (struct addrinfo *a = list; a; a = a->ai_next) {
				char text[100];
				CHECK(getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST) == 0);
				printf(" %d %s", a->ai_family, text);
			}
			puts("");
			if (list)
				freeaddrinfo(list);
		}
}

static void netlink(void)
{
	int s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct sockaddr_nl a = {.nl_family = AF_NETLINK};
	socklen_t n = sizeof a;
	struct {
		struct nlmsghdr h;
		struct rtgenmsg g;
	} q = {{NLMSG_LENGTH(sizeof(struct rtgenmsg)), RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 77, 0}, {AF_UNSPEC}};
	CHECK(s >= 0);
	SHOW(bind(s, (struct sockaddr *)&a, sizeof a));
	SHOW(getsockname(s, (struct sockaddr *)&a, &n));
	CHECK(a.nl_pid != 0);
	CHECK(send(s, &q, q.h.nlmsg_len, 0) == q.h.nlmsg_len);
	for (bool done = false; !done;) {
		char buf[65536];
		int got = recv(s, buf, sizeof buf, 0);
		CHECK(got > 0);
		for (struct nlmsghdr *h = (struct nlmsghdr *)buf; NLMSG_OK(h, (unsigned)got); h = NLMSG_NEXT(h, got)) {
			CHECK(h->nlmsg_seq == 77 && h->nlmsg_pid == a.nl_pid);
			if (h->nlmsg_type == NLMSG_DONE)
				done = true;
			else if (h->nlmsg_type == RTM_NEWLINK && ((struct ifinfomsg *)NLMSG_DATA(h))->ifi_index == 1)
				puts("link 1");
		}
	}
	q.h.nlmsg_type = 998;
	q.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	SHOW(send(s, &q, q.h.nlmsg_len, 0));
	char buf[8192];
	int got = recv(s, buf, sizeof buf, 0);
	struct nlmsghdr *h = (struct nlmsghdr *)buf;
	CHECK(NLMSG_OK(h, (unsigned)got));
	printf("type %d: %s\n", h->nlmsg_type, errname(-((struct nlmsgerr *)NLMSG_DATA(h))->error));
	SHOW(recv(s, buf, sizeof buf, MSG_DONTWAIT));
}

int main(void)
{
	ioctls();
	names();
	addresses();
	lookups();
	netlink();
	return 0;
}
