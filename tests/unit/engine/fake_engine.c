/* A stand-in for an inference server: as many ways of starting, failing and ending as the life cycle must tell apart.
 * usage: fake_engine -m MODEL --port P --mode MODE [--count N] [--file F]
 * modes: ready     503 for the first N answers, then 200
 *        die       listens, answers 503 N times, then says why and ends with 1
 *        refuse    says which argument it does not like and ends with 1
 *        mute      ends with 7 and says nothing
 *        never     503 for ever
 *        deaf      never listens
 *        stubborn  ready, and ignores SIGTERM
 *        port      the first N starts (counted in F) find the port taken; then ready
 *        liar      somebody else holds the port: this process only ends
 *        busy      ready, and its slot works for the first N looks
 *        crash     ready; GET /crash ends it with a last line */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *mode = "ready", *model = "", *file = "";
static int port, count, looks;

static void say(const char *line) {
    fprintf(stderr, "0.00.1 E %s\n", line);
    fflush(stderr);
}

static void arguments(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "-m")) model = argv[i + 1];
        else if (!strcmp(argv[i], "--port")) port = (int)strtol(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--mode")) mode = argv[i + 1];
        else if (!strcmp(argv[i], "--count")) count = (int)strtol(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--file")) file = argv[i + 1];
    }
}

static int starts_so_far(void) {
    FILE *f = fopen(file, "a+");
    if (!f) return 0;
    fputc('x', f);
    fseek(f, 0, SEEK_END);
    int n = (int)ftell(f);
    fclose(f);
    return n;
}

static int listening(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(fd, 8) != 0) {
        say("couldn't bind");
        exit(1);
    }
    return fd;
}

static void reply(int fd, int status, const char *body) {
    char b[1024];
    int n = snprintf(b, sizeof b, "HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                     status, strlen(body), body);
    if (write(fd, b, (size_t)n) < 0) perror("write");
}

static void serve_one(int listener) {
    char in[4096];
    int fd = accept(listener, NULL, NULL);
    if (fd < 0) return;
    ssize_t n = read(fd, in, sizeof in - 1);
    in[n > 0 ? n : 0] = '\0';
    looks++;
    int ready = !strcmp(mode, "never") || !strcmp(mode, "die") ? 0 : looks > count || !strcmp(mode, "busy");
    if (strstr(in, "GET /crash")) {
        say("GGML_ASSERT(x) failed");
        exit(3);
    } else if (!ready) {
        reply(fd, 503, "{\"error\":{\"message\":\"Loading model\",\"code\":503}}");
    } else if (strstr(in, "GET /slots")) {
        reply(fd, 200, !strcmp(mode, "busy") && count-- > 0 ? "[{\"id\":4,\"is_processing\":true}]" : "[{\"id\":4,\"is_processing\":false}]");
    } else if (strstr(in, "GET /props")) {
        reply(fd, 200, "{\"n\":2048,\"slots\":2,\"chat_template\":\"x\",\"build\":\"b1-f\"}");
    } else if (strstr(in, "POST /tokenize")) {
        reply(fd, 200, strstr(in, "bad") ? "{\"tokens\":[1,-2]}" : "{\"tokens\":[5,6,7]}");
    } else if (strstr(in, "GET /health")) {
        reply(fd, 200, "{\"status\":\"ok\"}");
    } else {
        reply(fd, 404, "{}");
    }
    close(fd);
    if (!strcmp(mode, "die") && looks >= count) {
        say("allocating 99999.00 MiB on device 0: cudaMalloc failed: out of memory");
        say("failed to load model");
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "--version")) return fprintf(stderr, "version: 1.2 (fake)\nbuilt with love\n") < 0;
    if (argc == 2 && !strcmp(argv[1], "--help")) return puts("-m, --model F\n--port N\n-c N\n--slots-path P\n--quant X\n--mode\n--no-map") < 0;
    arguments(argc, argv);
    fprintf(stderr, "0.00.0 I loading '%s'\nctx = %d\n", model, 4096);
    if (!strcmp(mode, "refuse")) return say("error: invalid argument: --wrong"), 1;
    if (!strcmp(mode, "mute")) return freopen("/dev/null", "w", stderr) ? 7 : 7;
    if (!strcmp(mode, "port") && starts_so_far() <= count) return say("couldn't bind"), 1;
    if (!strcmp(mode, "liar")) return usleep(60000), say("couldn't bind"), 1;
    if (!strcmp(mode, "stubborn")) signal(SIGTERM, SIG_IGN);
    if (!strcmp(mode, "deaf")) for (;;) pause();
    int fd = listening();
    fprintf(stderr, "listening on http\nCPU KV buffer size = 2.50 MiB\nGPU0 KV buffer size = 3 MiB\n");
    fflush(stderr);
    for (;;) serve_one(fd);
}
