// string-buffer: strings that threads change at the same time, each with a lock
// that every operation takes.
//
// Half of the threads append a shared string to one of their own; the others
// shorten and refill it. In the buggy form, append asks the other string for its
// length and then for its characters, so that it may have become shorter in
// between. The fixed form holds the other string's lock throughout.
#include "suite.h"

enum { LETTERS = 16 };

struct string {
	pthread_mutex_t mutex;
	long length, capacity;
	char *characters;
};

static long threads = 2, rounds = 30;
static struct string shared;

static void string_init(struct string *s)
{
	pthread_mutexattr_t recursive;
	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&s->mutex, &recursive);
	pthread_mutexattr_destroy(&recursive);
	s->length = 0;
	s->capacity = LETTERS;
	s->characters = allocate(s->capacity, 1);
}

static void string_destroy(struct string *s)
{
	free(s->characters);
	pthread_mutex_destroy(&s->mutex);
}

static void reserve(struct string *s, long length)
{
	if (length <= s->capacity)
		return;
	while (s->capacity < length)
		s->capacity *= 2;
	s->characters = realloc(s->characters, s->capacity);
	assert(s->characters != NULL);
}

static long length_of(struct string *s)
{
	pthread_mutex_lock(&s->mutex);
	long length = s->length;
	pthread_mutex_unlock(&s->mutex);
	return length;
}

static void get_characters(struct string *s, long end, char *to)
{
	pthread_mutex_lock(&s->mutex);
	assert(end <= s->length);
	memcpy(to, s->characters, end);
	pthread_mutex_unlock(&s->mutex);
}

static void append(struct string *s, struct string *other)
{
	pthread_mutex_lock(&s->mutex);
#ifndef BUGGY
	pthread_mutex_lock(&other->mutex);
#endif
	long length = length_of(other);
	reserve(s, s->length + length);
	DELAY(2);
	get_characters(other, length, s->characters + s->length);
	s->length += length;
#ifndef BUGGY
	pthread_mutex_unlock(&other->mutex);
#endif
	pthread_mutex_unlock(&s->mutex);
}

static void append_letter(struct string *s, char letter)
{
	pthread_mutex_lock(&s->mutex);
	reserve(s, s->length + 1);
	s->characters[s->length++] = letter;
	pthread_mutex_unlock(&s->mutex);
}

static void set_length(struct string *s, long length)
{
	pthread_mutex_lock(&s->mutex);
	reserve(s, length);
	for (long i = s->length; i < length; i++)
		s->characters[i] = ' ';
	s->length = length;
	pthread_mutex_unlock(&s->mutex);
}

// change shortens the shared string and refills it.
static void change(void)
{
	for (long i = 0; i < rounds; i++) {
		set_length(&shared, 2);
		DELAY(1);
		for (int k = 2; k < LETTERS; k++)
			append_letter(&shared, 'a' + k);
		DELAY(1);
	}
}

// collect appends the shared string to one of the thread's own, each copy of
// which must be a string that another thread made.
static void collect(void)
{
	struct string own;
	string_init(&own);
	for (long i = 0; i < rounds; i++) {
		append(&own, &shared);
		for (long k = 2; k < own.length; k++)
			if (own.characters[k] < 'c' || own.characters[k] >= 'a' + LETTERS)
				wrong("a copy has the character %d", own.characters[k]);
		set_length(&own, 0);
	}
	string_destroy(&own);
}

static void body(long id)
{
	if (id % 2 == 0)
		collect();
	else
		change();
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		NUMBER('p', "THREADS", &threads, 2, MAX_THREADS),
		NUMBER('r', "ROUNDS", &rounds, 1, 10000000),
		{0},
	});
	string_init(&shared);
	set_length(&shared, 2);

	run_threads(threads, body);

	// Several threads may have refilled it in turn.
	if (length_of(&shared) < LETTERS)
		wrong("the string has %ld characters", length_of(&shared));
	printf("string-buffer: %ld rounds, correct\n", rounds);
	string_destroy(&shared);
	return 0;
}
