// FUTEX_WAKE_OP: every operation and comparison, the shifted argument, and the threads it wakes on either word.
#include "futex.h"

static atomic_uint a, b, spare;

static void *sleeper(void *arg)
{
	CHECK(futex(&spare, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) == 0);
	return arg;
}

static void arithmetic(void)
{
	static const char *const name[] = {"set", "add", "or", "andn", "xor"};
	static const int ops[] = {FUTEX_OP_SET, FUTEX_OP_ADD, FUTEX_OP_OR, FUTEX_OP_ANDN, FUTEX_OP_XOR};
	for (int op = 0; op < LEN(name); op++) {
		for (int shift = 0; shift < 2; shift++) {
			b = 0x0f0f;
			unsigned enc = FUTEX_OP(ops[op] | (shift ? FUTEX_OP_OPARG_SHIFT : 0), 3, FUTEX_OP_CMP_EQ, 0);
			long r = futex(&a, FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, &b, enc);
			printf("%s%s: %ld, %#x\n", name[op], shift ? " shifted" : "", r, b);
		}
	}
	// A negative argument is sign-extended from 12 bits.
	b = 10;
	long r = futex(&a, FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, &b,
		       FUTEX_OP(FUTEX_OP_ADD, 0xfff, FUTEX_OP_CMP_EQ, 0));
	printf("add -1: %ld, %u\n", r, b);
	SHOW(futex(&a, FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, &b, FUTEX_OP(7, 1, FUTEX_OP_CMP_EQ, 0)));
}

// compare puts one sleeper on b and reports whether the operation, which leaves
// b as it is, wakes it.
static void compare(const char *name, int cmp, int arg)
{
	pthread_t t = start(sleeper, NULL);
	gather(&spare, &b, 1, FUTEX_PRIVATE_FLAG);
	b = 5;
	long r = futex(&a, FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, &b, FUTEX_OP(FUTEX_OP_ADD, 0, cmp, arg));
	printf("5 %s %d: %ld\n", name, arg, r);
	if (r == 0)
		CHECK(futex(&b, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1);
	finish(t);
}

int main(void)
{
	arithmetic();
	static const char *const name[] = {"==", "!=", "<", "<=", ">", ">="};
	for (int cmp = 0; cmp < LEN(name); cmp++)
		for (int arg = 4; arg <= 6; arg++)
			compare(name[cmp], cmp, arg);

	// Three sleep on a, three on b.
	pthread_t t[6];
	for (int i = 0; i < LEN(t); i++) {
		t[i] = start(sleeper, NULL);
		gather(&spare, i < 3 ? &a : &b, 1, FUTEX_PRIVATE_FLAG);
	}
	b = 0;
	SHOW(futex(&a, FUTEX_WAKE_OP_PRIVATE, 1, (void *)2, &b, FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_EQ, 0)));
	SHOW(futex(&a, FUTEX_WAKE_OP_PRIVATE, 1, (void *)2, &b, FUTEX_OP(FUTEX_OP_SET, 2, FUTEX_OP_CMP_EQ, 0)));
	printf("left on a: %ld\n", futex(&a, FUTEX_WAKE_PRIVATE, 9, NULL, NULL, 0));
	printf("left on b: %ld\n", futex(&b, FUTEX_WAKE_PRIVATE, 9, NULL, NULL, 0));
	printf("b %u\n", b);
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);
	return 0;
}
