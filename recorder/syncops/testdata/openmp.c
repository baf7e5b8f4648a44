// Critical sections, locks and barriers of OpenMP, in fixed numbers.
#include <omp.h>
#include <stdio.h>

int main(void)
{
	long a = 0, b = 0, c = 0;
	omp_lock_t lock;
	omp_init_lock(&lock);
#pragma omp parallel num_threads(4)
	{
		for (int i = 0; i < 10; i++) {
#pragma omp critical
			a++;
#pragma omp critical(named)
			b++;
			omp_set_lock(&lock);
			c++;
			omp_unset_lock(&lock);
		}
#pragma omp barrier
	}
	printf("%ld %ld %ld\n", a, b, c);
	return 0;
}
