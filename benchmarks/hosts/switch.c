/* A switch between network namespaces: full-duplex ports of one bandwidth, and one latency from host to host.

     switch BYTES_PER_SECOND SECONDS PID...

   For each process, a network device eth0 is made in its namespace, whose packets come here; one to 10.0.0.N goes to
   the N-th process.  The port that a packet leaves by is busy for its bytes on the wire, Ethernet's frames included;
   then that of the receiver, from when it is free and the first byte is there; the packet arrives a latency later.

     u = max(now, up[from])       up[from] = u + bytes / rate
     v = max(u, down[to])         down[to] = v + bytes / rate        arrival = down[to] + latency

   The next packet is taken from a device when the wire is nearly free, so that the system's queues see a busy line.
   Each port has a thread, on the core that its number has by turns: what sending costs is spread evenly.  Prints a line
   when all devices are there, and runs until it is killed.  Lines "BYTES_PER_SECOND SECONDS" of the standard input
   change all links. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { PORTS = 64, LARGEST = 1 << 17, ETHERNET = 38, HEADERS = 52 };
/* seconds before the wire is free at which the next packet is taken */
static const double EARLY = 250e-6;

typedef struct packet {
    struct packet *next;
    double arrival;
    int to;
    size_t size;
    unsigned char data[LARGEST];
} packet;

typedef struct {
    int fd;
    double up, down;
    packet *waiting, *spare; /* what has been taken from this port, by arrival; what is free */
} port;

static port ports[PORTS];
static int count;
static _Atomic double rate, latency;
static pthread_mutex_t downs = PTHREAD_MUTEX_INITIALIZER;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int open_device(const char *pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
    int space = open(path, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET)) fail(path);
    close(space);
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) fail("/dev/net/tun");
    struct ifreq device = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
    strcpy(device.ifr_name, "eth0");
    if (ioctl(fd, TUNSETIFF, &device) || ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6)) fail("eth0");
    return fd;
}

/* Bytes on the wire: what the system hands over in one piece travels in frames, with headers of their own. */
static double on_wire(const packet *p) {
    const struct virtio_net_hdr *h = (const void *)p->data;
    size_t size = p->size - sizeof *h, frames = 1;
    if (h->gso_type != VIRTIO_NET_HDR_GSO_NONE && h->gso_size)
        frames = (size - h->hdr_len + h->gso_size - 1) / h->gso_size;
    return (double)(size + (frames - 1) * HEADERS + frames * ETHERNET);
}

/* The number of the port that a packet goes to, -1 for none. */
static int receiver(const packet *p) {
    const unsigned char *ip = p->data + sizeof(struct virtio_net_hdr);
    int to = ip[19] - 1;
    return ip[0] >> 4 == 4 && ip[16] == 10 && !ip[17] && !ip[18] && to < count ? to : -1;
}

static double larger(double a, double b) { return a > b ? a : b; }

/* Takes a packet from a port and says when it arrives; 0 where there is none. */
static int take(port *from, double time) {
    packet *p = from->spare ? from->spare : malloc(sizeof *p);
    if (!p) fail("memory");
    from->spare = from->spare ? p->next : NULL;
    ssize_t size = read(from->fd, p->data, sizeof p->data);
    p->size = size > 0 ? (size_t)size : 0;
    p->to = p->size > sizeof(struct virtio_net_hdr) + 20 ? receiver(p) : -1;
    if (p->to < 0) {
        p->next = from->spare;
        from->spare = p;
        return size > 0;
    }
    double busy = on_wire(p) / rate;
    from->up = larger(from->up, time);
    pthread_mutex_lock(&downs);
    double down = larger(ports[p->to].down, from->up) + busy;
    ports[p->to].down = down;
    pthread_mutex_unlock(&downs);
    from->up += busy;
    p->arrival = down + latency;
    packet **place = &from->waiting;
    while (*place && (*place)->arrival <= p->arrival) place = &(*place)->next;
    p->next = *place;
    *place = p;
    return 1;
}

/* Hands over what has arrived. */
static void deliver(port *from, double time) {
    while (from->waiting && from->waiting->arrival <= time) {
        packet *p = from->waiting;
        if (write(ports[p->to].fd, p->data, p->size) < 0 && errno != EAGAIN && errno != EIO) fail("write");
        from->waiting = p->next;
        p->next = from->spare;
        from->spare = p;
    }
}

static void *carry(void *argument) {
    port *from = argument;
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET((size_t)((from - ports) % sysconf(_SC_NPROCESSORS_ONLN)), &core);
    pthread_setaffinity_np(pthread_self(), sizeof core, &core);
    prctl(PR_SET_TIMERSLACK, 1UL);
    struct sched_param first = {.sched_priority = 1};
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
    for (;;) {
        double time = now();
        deliver(from, time);
        while (from->up - EARLY <= time && take(from, time)) continue;
        time = now();
        double next = from->waiting ? from->waiting->arrival : time + 0.5;
        struct pollfd polled = {.fd = from->fd, .events = POLLIN};
        if (from->up - EARLY > time) {
            polled.fd = -1;
            next = from->up - EARLY < next ? from->up - EARLY : next;
        }
        struct timespec pause = {0, next > time ? (long)((next - time) * 1e9) : 0};
        if (ppoll(&polled, 1, &pause, NULL) < 0 && errno != EINTR) fail("ppoll");
    }
    return NULL;
}

int main(int argc, char **argv) {
    double bytes = argc > 3 ? atof(argv[1]) : 0, seconds = argc > 3 ? atof(argv[2]) : 0;
    if (argc - 3 > PORTS || bytes <= 0 || seconds < 0) {
        fprintf(stderr, "usage: switch BYTES_PER_SECOND SECONDS PID...\n");
        return 2;
    }
    rate = bytes;
    latency = seconds;
    count = argc - 3;
    for (int i = 0; i < count; i++) ports[i].fd = open_device(argv[3 + i]);
    pthread_t thread;
    for (int i = 0; i < count; i++)
        if (pthread_create(&thread, NULL, carry, &ports[i])) fail("thread");
    puts("made");
    fflush(stdout);
    while (scanf("%lf %lf", &bytes, &seconds) == 2) {
        rate = bytes;
        latency = seconds;
    }
    pthread_join(thread, NULL);
}
