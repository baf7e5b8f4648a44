// Calendar time: gmtime, localtime by rules in TZ, mktime, timegm, strftime, strptime, far and negative times.
#include "conformance.h"

static void zone(const char *tz)
{
	static const time_t when[] = {0, 951782399, 1700000000, 1720000000, -1, -2208988800, 4102444800, 253402300799};
	CHECK(setenv("TZ", tz, 1) == 0);
	tzset();
	printf("%s: %s %s %ld %d\n", tz, tzname[0], tzname[1], timezone, daylight);
	for (int i = 0; i < LEN(when); i++) {
		char buf[100];
		struct tm t;
		CHECK(localtime_r(&when[i], &t) != NULL);
		CHECK(strftime(buf, sizeof buf, "%Y-%m-%d %H:%M:%S %Z %z %j %a", &t) > 0);
		CHECK(mktime(&t) == when[i]);
		printf("  %s\n", buf);
	}
}

int main(void)
{
	zone("UTC0");
	zone("EST5EDT,M3.2.0,M11.1.0");
	zone("<+0530>-5:30");
	zone("NZST-12NZDT,M9.5.0,M4.1.0/3");
	struct tm t = {0};
	char buf[100];
	t = (struct tm){.tm_year = 124, .tm_mon = 13, .tm_mday = 35, .tm_hour = -5};
	time_t n = timegm(&t);
	CHECK(strftime(buf, sizeof buf, "%F %T", &t) > 0);
	printf("normalised %ld: %s\n", (long)n, buf);
	memset(&t, 0, sizeof t);
	CHECK(strptime("Tue, 14 Nov 2023 22:13:20", "%a, %d %b %Y %H:%M:%S", &t) != NULL);
	printf("parsed %ld\n", (long)timegm(&t));
	printf("difference %.1f\n", difftime(1700000000, 1600000000));
	CHECK(setenv("TZ", "UTC0", 1) == 0);
	tzset();
	n = 1700000000;
	printf("%s", ctime_r(&n, buf));
	printf("%s", asctime_r(gmtime_r(&n, &t), buf));
	return 0;
}
