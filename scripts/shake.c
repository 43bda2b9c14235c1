/*
 * What shake.cjs has native programs preload: before one in 20 reads from sockets and writes to them, the thread sleeps
 * up to 50 ms. So seldom, because its other sockets wait meanwhile. Pauses are drawn from SHAKE_SEED, by xorshift.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { ONE_IN = 20, LONGEST_NS = 50 * 1000 * 1000 };

static uint32_t next_random(void) {
  static atomic_uint threads;
  static _Thread_local uint32_t state;
  if (state == 0) {
    const char *seed = getenv("SHAKE_SEED");
    uint32_t thread = atomic_fetch_add(&threads, 1);
    state = ((seed ? strtoul(seed, NULL, 10) : 0) ^ (thread + 1) * 0x9e3779b9u) | 1;
  }
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

/* Services in Node have the library, too, and pause by themselves. */
static int is_node(void) {
  static atomic_int known;
  if (known == 0) known = strcmp(program_invocation_short_name, "node") == 0 ? 1 : 2;
  return known == 1;
}

static void pause_at_random(int fd) {
  if (is_node()) return;
  int type;
  socklen_t size = sizeof type;
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || next_random() % ONE_IN != 0) return;
  struct timespec pause = {0, next_random() % LONGEST_NS};
  nanosleep(&pause, NULL);
}

/* A function of the library of C, of which the first argument is a descriptor. */
#define SHAKEN(name, parameters, ...)                        \
  ssize_t name parameters {                                  \
    static ssize_t(*original) parameters;                    \
    if (!original) original = dlsym(RTLD_NEXT, #name);       \
    pause_at_random(fd);                                     \
    return original(fd, __VA_ARGS__);                        \
  }

SHAKEN(read, (int fd, void *to, size_t size), to, size)
SHAKEN(readv, (int fd, const struct iovec *to, int count), to, count)
SHAKEN(recv, (int fd, void *to, size_t size, int flags), to, size, flags)
SHAKEN(recvmsg, (int fd, struct msghdr *to, int flags), to, flags)
SHAKEN(write, (int fd, const void *from, size_t size), from, size)
SHAKEN(writev, (int fd, const struct iovec *from, int count), from, count)
SHAKEN(send, (int fd, const void *from, size_t size, int flags), from, size, flags)
SHAKEN(sendmsg, (int fd, const struct msghdr *from, int flags), from, flags)
