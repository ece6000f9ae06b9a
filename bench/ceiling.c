//go:build ignore

// (The line above keeps the Go tools from taking this file for a part of package bench.)

// ceiling: the limit that thru is held against. It makes the same system
// calls as thru's data paths and nothing else, in C: two processes, one
// thread a stream at each end, blocking sockets, no library in between.
//
//   ceiling tcp     send and recv, which copy; --lean: tee and splice, recv with MSG_TRUNC
//   ceiling udp     sendmmsg and recvmmsg; --gso: UDP_SEGMENT and UDP_GRO
//   ceiling rr      one connection: request and response in turn
//   ceiling crr     connect, request, response, close
//
// The parent receives (or serves), its forked child sends (or asks); counters
// lie in memory that both share. It prints one line of JSON. Linux only.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum { MAX_STREAMS = 64, MAX_BATCH = 1024, MAX_DATAGRAM = 65507 };
enum { SUB_BITS = 6, BUCKETS = 64 << SUB_BITS }; // a histogram of 1.6% resolution
enum { CPU_PAIRED = -2, CPU_ANY = -1 };

// lane is what one stream counts. Only one thread writes each member.
struct lane {
	_Alignas(128) _Atomic uint64_t bytes;
	_Atomic uint64_t units; // datagrams or transactions
	uint64_t expected;      // the next sequence number
	uint64_t late;          // datagrams out of order or repeated
	uint64_t age_ns;        // sum of the ages of the headers, so that they are read
	_Atomic uint64_t histogram[BUCKETS];
};

struct shared {
	_Atomic int measuring;
	struct lane lanes[MAX_STREAMS];
};

// header opens each datagram, as thru's do.
struct header {
	uint64_t sequence;
	uint64_t sent_ns;
};

static struct options {
	const char *mode, *congestion;
	double seconds, omit;
	int streams, lean, gso, bare, batch, segments, socket_buffer;
	size_t length, receive_length;
	int send_cpu, receive_cpu;
} opt = {
	.seconds = 2, .omit = 0.5, .streams = 1, .batch = 0,
	.segments = 0, .send_cpu = CPU_ANY, .receive_cpu = CPU_ANY,
};

static struct shared *shared;
static int sockets[MAX_STREAMS]; // this process's end of each stream
static struct sockaddr_in addresses[MAX_STREAMS];

static void die(const char *doing) {
	fprintf(stderr, "ceiling: %s: %s\n", doing, strerror(errno));
	exit(1);
}

static int must(int result, const char *doing) {
	if (result < 0) die(doing);
	return result;
}

static uint64_t now_ns(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void nap(double seconds) {
	struct timespec t = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
	while (nanosleep(&t, &t) < 0 && errno == EINTR) {}
}

// add counts without the cost of an atomic addition: each counter has one writer.
static inline void add(_Atomic uint64_t *counter, uint64_t n) {
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

static void bind_thread(int cpu, int stream) {
	if (cpu == CPU_ANY) return;
	if (cpu == CPU_PAIRED) cpu = stream % (int)sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	must(sched_setaffinity(0, sizeof set, &set), "binding to a CPU");
}

// memory returns zeroed pages that are already there, so that no page fault is measured.
static void *memory(size_t length) {
	void *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (p == MAP_FAILED) die("allocating");
	return p;
}

// ---- TCP bulk ----

// The lean sender repeats the pages of a full pipe in a second one, from where
// they go to the socket: as sendfile, which sends 64 KB at a time, without the
// switches to the receiver in between.
enum { PIPE = 1 << 20 };

static void tcp_send_lean(int stream) {
	int full[2], next[2], length = opt.length < PIPE ? opt.length : PIPE;
	must(pipe(full), "making a pipe");
	must(pipe(next), "making a pipe");
	must(fcntl(full[1], F_SETPIPE_SZ, length), "sizing a pipe");
	must(fcntl(next[1], F_SETPIPE_SZ, length), "sizing a pipe");
	struct iovec data = {memory(length), length};
	if (vmsplice(full[1], &data, 1, 0) != length) die("filling a pipe");
	for (;;) {
		ssize_t left = must(tee(full[0], next[1], length, 0), "repeating the data");
		while (left > 0) {
			ssize_t n = splice(next[0], NULL, sockets[stream], NULL, left, 0);
			if (n <= 0) return;
			left -= n;
		}
	}
}

static void tcp_send(int stream) {
	if (opt.lean) return tcp_send_lean(stream);
	char *buffer = memory(opt.length);
	for (;;)
		if (send(sockets[stream], buffer, opt.length, MSG_NOSIGNAL) < 0) return;
}

static void tcp_receive(int stream) {
	struct lane *lane = &shared->lanes[stream];
	char *buffer = memory(opt.receive_length);
	int flags = opt.lean ? MSG_TRUNC : 0; // tcp(7): the bytes are discarded, not copied
	for (;;) {
		ssize_t n = recv(sockets[stream], buffer, opt.receive_length, flags);
		if (n <= 0) return;
		add(&lane->bytes, n);
	}
}

// ---- UDP ----

// per_message is how many datagrams one message carries. With GSO they are
// many: up to 128 of them (UDP_MAX_SEGMENTS), before Linux 6.9 up to 64, and
// not more bytes than one datagram may have.
static int per_message(int socket) {
	if (!opt.gso) return 1;
	int segment = opt.length, most = MAX_DATAGRAM / segment, n = opt.segments ? opt.segments : 128;
	if (n > most) n = most;
	must(setsockopt(socket, SOL_UDP, UDP_SEGMENT, &segment, sizeof segment), "setting UDP_SEGMENT");
	if (opt.segments || n <= 64) return n;
	char *buffer = memory(n * opt.length);
	return send(socket, buffer, n * opt.length, 0) < 0 && errno == EINVAL ? 64 : n;
}

static void udp_send(int stream) {
	int each = per_message(sockets[stream]);
	size_t size = each * opt.length;
	char *buffer = memory(opt.batch * size);
	struct mmsghdr messages[MAX_BATCH] = {0};
	struct iovec vectors[MAX_BATCH];
	for (int i = 0; i < opt.batch; i++) {
		vectors[i] = (struct iovec){buffer + i * size, size};
		messages[i].msg_hdr = (struct msghdr){.msg_iov = &vectors[i], .msg_iovlen = 1};
	}
	uint64_t sequence = 0;
	for (;;) {
		if (!opt.bare) {
			uint64_t t = now_ns(), next = sequence;
			for (char *p = buffer, *end = buffer + opt.batch * size; p < end; p += opt.length)
				*(struct header *)p = (struct header){next++, t};
		}
		int n = sendmmsg(sockets[stream], messages, opt.batch, 0);
		if (n < 0 && errno != ECONNREFUSED && errno != ENOBUFS) return;
		if (n > 0) sequence += (uint64_t)n * each;
	}
}

// read_headers looks at the header of every datagram of one message.
static inline void read_headers(struct lane *lane, const char *p, size_t size, size_t segment, uint64_t now) {
	for (const char *end = p + size; p + sizeof(struct header) <= end; p += segment) {
		const struct header *h = (const struct header *)p;
		if (h->sequence < lane->expected) lane->late++;
		else lane->expected = h->sequence + 1;
		lane->age_ns += now - h->sent_ns;
	}
}

// segment_of is the size of the datagrams that GRO left together in a message.
static size_t segment_of(struct msghdr *message, size_t size) {
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c))
		if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) return *(int *)CMSG_DATA(c);
	return size;
}

static void udp_receive(int stream) {
	struct lane *lane = &shared->lanes[stream];
	size_t size = opt.gso ? 65536 : opt.length;
	char *buffer = memory(opt.batch * size), *control = memory(opt.batch * 64);
	struct mmsghdr messages[MAX_BATCH] = {0};
	struct iovec vectors[MAX_BATCH];
	for (int i = 0; i < opt.batch; i++) {
		vectors[i] = (struct iovec){buffer + i * size, size};
		messages[i].msg_hdr = (struct msghdr){.msg_iov = &vectors[i], .msg_iovlen = 1};
		if (opt.gso) messages[i].msg_hdr.msg_control = control + i * 64;
	}
	int on = 1;
	if (opt.gso) must(setsockopt(sockets[stream], SOL_UDP, UDP_GRO, &on, sizeof on), "setting UDP_GRO");
	for (;;) {
		for (int i = 0; opt.gso && i < opt.batch; i++) messages[i].msg_hdr.msg_controllen = 64;
		int n = recvmmsg(sockets[stream], messages, opt.batch, MSG_WAITFORONE, NULL);
		if (n <= 0) return;
		uint64_t bytes = 0, datagrams = 0, now = opt.bare ? 0 : now_ns();
		for (int i = 0; i < n; i++) {
			size_t got = messages[i].msg_len, segment = opt.gso ? segment_of(&messages[i].msg_hdr, got) : got;
			if (!opt.bare) read_headers(lane, vectors[i].iov_base, got, segment, now);
			bytes += got;
			datagrams += (got + segment - 1) / segment;
		}
		add(&lane->bytes, bytes);
		add(&lane->units, datagrams);
	}
}

// ---- request and response ----

// record puts a latency in its bucket: the power of two and SUB_BITS below it.
static void record(struct lane *lane, uint64_t ns) {
	int power = 63 - __builtin_clzll(ns | 1), shift = power > SUB_BITS ? power - SUB_BITS : 0;
	add(&lane->histogram[((uint64_t)shift << SUB_BITS) + (ns >> shift)], 1);
}

// quantile is the middle of the bucket below which this share of all latencies lies.
static double quantile(double share) {
	uint64_t total = 0, seen = 0, sums[BUCKETS] = {0};
	for (int s = 0; s < opt.streams; s++)
		for (int i = 0; i < BUCKETS; i++) total += shared->lanes[s].histogram[i], sums[i] += shared->lanes[s].histogram[i];
	for (int i = 0; i < BUCKETS; i++) {
		if ((seen += sums[i]) < share * total || !total) continue;
		int shift = i >> SUB_BITS > 0 ? (i >> SUB_BITS) - 1 : 0; // undo record
		uint64_t low = (uint64_t)(i - ((uint64_t)shift << SUB_BITS)) << shift;
		return low + (double)(1ULL << shift) / 2;
	}
	return 0;
}

static void transacted(struct lane *lane, uint64_t since) {
	if (!atomic_load_explicit(&shared->measuring, memory_order_relaxed)) return;
	record(lane, now_ns() - since);
	add(&lane->units, 1);
	add(&lane->bytes, 2 * opt.length);
}

// receive_all receives until a whole message is there; false at the end of the stream.
static int receive_all(int fd, char *buffer, size_t length) {
	for (size_t got = 0; got < length;) {
		ssize_t n = recv(fd, buffer + got, length - got, 0);
		if (n <= 0) return 0;
		got += n;
	}
	return 1;
}

static void ask(int stream) {
	char *buffer = memory(opt.length);
	for (;;) {
		uint64_t t = now_ns();
		if (send(sockets[stream], buffer, opt.length, MSG_NOSIGNAL) < 0) return;
		if (!receive_all(sockets[stream], buffer, opt.length)) return;
		transacted(&shared->lanes[stream], t);
	}
}

static void answer(int stream) {
	char *buffer = memory(opt.length);
	while (receive_all(sockets[stream], buffer, opt.length))
		if (send(sockets[stream], buffer, opt.length, MSG_NOSIGNAL) < 0) return;
}

static void connect_and_ask(int stream) {
	char *buffer = memory(opt.length);
	for (;;) {
		uint64_t t = now_ns();
		int fd = must(socket(AF_INET, SOCK_STREAM, 0), "making a socket");
		must(connect(fd, (struct sockaddr *)&addresses[stream], sizeof addresses[stream]), "connecting");
		if (send(fd, buffer, opt.length, MSG_NOSIGNAL) < 0) return;
		if (!receive_all(fd, buffer, opt.length)) return;
		if (recv(fd, buffer, 1, 0) != 0) return; // the other end closes first
		close(fd);
		transacted(&shared->lanes[stream], t);
	}
}

// accept_and_answer closes first: then the state that waits for late segments
// (TIME-WAIT) holds no port of the asking end.
static void accept_and_answer(int stream) {
	char *buffer = memory(opt.length);
	for (;;) {
		int fd = must(accept(sockets[stream], NULL, NULL), "accepting");
		if (receive_all(fd, buffer, opt.length)) send(fd, buffer, opt.length, MSG_NOSIGNAL);
		close(fd);
	}
}

// ---- the two processes ----

// modes names what the threads of both processes do.
static const struct mode {
	const char *name;
	int type;
	int connected; // the connections are made before the threads
	void (*child)(int), (*parent)(int);
} modes[] = {
	{"tcp", SOCK_STREAM, 1, tcp_send, tcp_receive},
	{"udp", SOCK_DGRAM, 1, udp_send, udp_receive},
	{"rr", SOCK_STREAM, 1, ask, answer},
	{"crr", SOCK_STREAM, 0, connect_and_ask, accept_and_answer},
};
static const struct mode *mode;
static int is_child;

static void *thread(void *argument) {
	int stream = (int)(intptr_t)argument;
	bind_thread(is_child ? opt.send_cpu : opt.receive_cpu, stream);
	(is_child ? mode->child : mode->parent)(stream);
	return NULL;
}

static void start_threads(void) {
	for (intptr_t i = 0; i < opt.streams; i++) {
		pthread_t id;
		if ((errno = pthread_create(&id, NULL, thread, (void *)i))) die("starting a thread");
		pthread_detach(id);
	}
}

static void set_options(int fd) {
	int on = 1;
	if (mode->type == SOCK_STREAM) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		if (opt.congestion)
			must(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, opt.congestion, strlen(opt.congestion)), "setting the congestion control");
	}
	if (!opt.socket_buffer) return;
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &opt.socket_buffer, sizeof(int));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &opt.socket_buffer, sizeof(int));
}

// open_ports makes the sockets that the child will reach, one a stream.
static void open_ports(void) {
	for (int i = 0; i < opt.streams; i++) {
		struct sockaddr_in *address = &addresses[i];
		*address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		socklen_t size = sizeof *address;
		int fd = sockets[i] = must(socket(AF_INET, mode->type, 0), "making a socket");
		set_options(fd);
		must(bind(fd, (struct sockaddr *)address, size), "binding");
		must(getsockname(fd, (struct sockaddr *)address, &size), "reading the port");
		if (mode->type == SOCK_STREAM) must(listen(fd, 1024), "listening");
	}
}

static void run_child(void) {
	is_child = 1;
	for (int i = 0; mode->connected && i < opt.streams; i++) {
		close(sockets[i]);
		sockets[i] = must(socket(AF_INET, mode->type, 0), "making a socket");
		set_options(sockets[i]);
		must(connect(sockets[i], (struct sockaddr *)&addresses[i], sizeof addresses[i]), "connecting");
	}
	start_threads();
	for (;;) pause();
}

static void accept_all(void) {
	for (int i = 0; mode->connected && mode->type == SOCK_STREAM && i < opt.streams; i++) {
		int fd = must(accept(sockets[i], NULL, NULL), "accepting");
		close(sockets[i]);
		sockets[i] = fd;
	}
}

struct reading {
	uint64_t ns, bytes, units;
	double cpu_s;
};

static struct reading read_counters(clockid_t other) {
	struct timespec mine, theirs;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &mine);
	clock_gettime(other, &theirs);
	struct reading r = {.ns = now_ns(), .cpu_s = mine.tv_sec + theirs.tv_sec + (mine.tv_nsec + theirs.tv_nsec) / 1e9};
	for (int i = 0; i < opt.streams; i++) r.bytes += shared->lanes[i].bytes, r.units += shared->lanes[i].units;
	return r;
}

static void print_result(struct reading a, struct reading b) {
	double seconds = (b.ns - a.ns) / 1e9;
	uint64_t bytes = b.bytes - a.bytes, units = b.units - a.units, late = 0;
	for (int i = 0; i < opt.streams; i++) late += shared->lanes[i].late;
	printf("{\"mode\":\"%s\",\"seconds\":%.6f,\"bytes\":%lu,\"bits_per_s\":%.0f,\"cpu_s\":%.4f,\"late\":%lu,"
	       "\"units\":%lu,\"units_per_s\":%.1f,\"p50_ns\":%.0f,\"p99_ns\":%.0f}\n",
	       mode->name, seconds, bytes, bytes * 8 / seconds, b.cpu_s - a.cpu_s, late,
	       units, units / seconds, quantile(0.5), quantile(0.99));
}

static void measure(pid_t child) {
	clockid_t other;
	if ((errno = clock_getcpuclockid(child, &other))) die("finding the child's clock");
	nap(opt.omit);
	struct reading a = read_counters(other);
	shared->measuring = 1;
	nap(opt.seconds);
	struct reading b = read_counters(other);
	if (waitpid(child, NULL, WNOHANG) != 0) {
		errno = EPIPE;
		die("the sender ended too early");
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0); // its CPU time now counts as that of this process's children
	print_result(a, b);
}

// ---- options ----

static void usage(void) {
	fprintf(stderr,
		"usage: ceiling tcp|udp|rr|crr [options]\n"
		"  -t SECONDS  -O SECONDS not counted  -P STREAMS  -l LENGTH  -r LENGTH of a receive\n"
		"  -A off | pair (stream i on CPU i) | SENDER,RECEIVER   -C CONGESTION   -w SOCKET BUFFER\n"
		"  --lean (tcp: tee and splice, MSG_TRUNC)\n"
		"  --gso (udp)  -s SEGMENTS a message  -b MESSAGES a call  --bare (no headers)\n");
	exit(2);
}

static void parse_cpus(const char *text) {
	if (!strcmp(text, "off")) return;
	if (!strcmp(text, "pair")) opt.send_cpu = opt.receive_cpu = CPU_PAIRED;
	else if (sscanf(text, "%d,%d", &opt.send_cpu, &opt.receive_cpu) != 2) usage();
}

static void parse(int argc, char **argv) {
	static const struct option names[] = {{"lean", 0, &opt.lean, 1}, {"gso", 0, &opt.gso, 1}, {"bare", 0, &opt.bare, 1}, {0}};
	for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
		if (!strcmp(argv[1], modes[i].name)) mode = &modes[i];
	if (!mode) usage();
	for (int c; (c = getopt_long(argc - 1, argv + 1, "t:O:P:l:r:A:C:w:s:b:", names, NULL)) != -1;) switch (c) {
		case 't': opt.seconds = atof(optarg); break;
		case 'O': opt.omit = atof(optarg); break;
		case 'P': opt.streams = atoi(optarg); break;
		case 'l': opt.length = strtoul(optarg, NULL, 10); break;
		case 'r': opt.receive_length = strtoul(optarg, NULL, 10); break;
		case 'A': parse_cpus(optarg); break;
		case 'C': opt.congestion = optarg; break;
		case 'w': opt.socket_buffer = atoi(optarg); break;
		case 's': opt.segments = atoi(optarg); break;
		case 'b': opt.batch = atoi(optarg); break;
		case 0: break;
		default: usage();
	}
}

static void set_defaults(void) {
	int udp = mode->type == SOCK_DGRAM;
	if (!opt.length) opt.length = udp ? 1400 : strcmp(mode->name, "tcp") ? 1 : opt.lean ? 1 << 20 : 128 << 10;
	if (!opt.receive_length) opt.receive_length = opt.length;
	if (!opt.batch) opt.batch = opt.gso ? 16 : 64;
	if (udp && !opt.socket_buffer) opt.socket_buffer = 4 << 20; // else a thread that waits for its CPU loses datagrams
	if (opt.streams < 1 || opt.streams > MAX_STREAMS || opt.batch > MAX_BATCH || opt.batch < 1) usage();
	if (udp && (opt.length < sizeof(struct header) || opt.length > MAX_DATAGRAM)) usage();
}

int main(int argc, char **argv) {
	parse(argc, argv);
	set_defaults();
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) die("allocating");
	open_ports();
	pid_t child = must(fork(), "starting the sender");
	if (child == 0) run_child();
	accept_all();
	start_threads();
	measure(child);
	return 0;
}
