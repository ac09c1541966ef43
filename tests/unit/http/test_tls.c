/* https over the pre-opened connection, against a TLS server of our own with a certificate made for the test. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include "http/http.h"
#include "os/os.h"

static const char ANSWER[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                             "9\r\ndata: a\n\n\r\n";
static const char REST[] = "9\r\ndata: b\n\n\r\n0\r\n\r\n";

typedef struct tls {
    EVP_PKEY *key;
    X509 *cert;
    SSL_CTX *ctx;
    int listen_fd;
    bool cut; /* close before the rest, without a word */
    char url[64], dir[64], pem[96];
    tl_thread *thread;
    tl_http_loop *loop;
} tls;

static void make_cert(tls *t) {
    t->key = EVP_EC_gen("P-256");
    t->cert = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(t->cert), 1);
    X509_set_version(t->cert, 2);
    X509_gmtime_adj(X509_getm_notBefore(t->cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(t->cert), 86400);
    X509_set_pubkey(t->cert, t->key);
    X509_NAME *name = X509_get_subject_name(t->cert);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"tally test", -1, -1, 0);
    X509_set_issuer_name(t->cert, name);
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "IP:127.0.0.1");
    X509_add_ext(t->cert, ext, -1);
    X509_EXTENSION_free(ext);
    assert_true(X509_sign(t->cert, t->key, EVP_sha256()) > 0);
    FILE *f = fopen(t->pem, "w");
    assert_non_null(f);
    PEM_write_X509(f, t->cert);
    fclose(f);
}

/* One connection: a request, half an answer, the other half 20 ms later. */
static void *serve(void *ctx) {
    tls *t = ctx;
    char block[4096];
    const int fd = accept(t->listen_fd, NULL, NULL);
    const int on = 1; /* or the half answer waits for the acknowledgement of the session tickets */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    SSL *ssl = SSL_new(t->ctx);
    SSL_set_fd(ssl, fd);
    if (SSL_accept(ssl) == 1 && SSL_read(ssl, block, sizeof block) > 0) {
        SSL_write(ssl, ANSWER, sizeof ANSWER - 1);
        tl_sleep_ns(20 * TL_MS);
        if (!t->cut) {
            SSL_write(ssl, REST, sizeof REST - 1);
            SSL_shutdown(ssl);
        }
    }
    SSL_free(ssl);
    close(fd);
    ERR_clear_error();
    return NULL;
}

static int up(void **state) {
    tls *t = tl_xalloc(sizeof *t);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    signal(SIGPIPE, SIG_IGN);
    snprintf(t->dir, sizeof t->dir, "/tmp/tally-tls-XXXXXX");
    if (mkdtemp(t->dir) == NULL) return -1;
    snprintf(t->pem, sizeof t->pem, "%s/ca.pem", t->dir);
    make_cert(t);
    t->ctx = SSL_CTX_new(TLS_server_method());
    SSL_CTX_use_certificate(t->ctx, t->cert);
    SSL_CTX_use_PrivateKey(t->ctx, t->key);
    t->listen_fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(t->listen_fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(t->listen_fd, 4) < 0 ||
        getsockname(t->listen_fd, (struct sockaddr *)&a, &n) < 0)
        return -1;
    snprintf(t->url, sizeof t->url, "https://127.0.0.1:%u/x", ntohs(a.sin_port));
    *state = t;
    return tl_http_loop_new(&t->loop, NULL) == TL_OK ? 0 : -1;
}

static int down(void **state) {
    tls *t = *state;
    tl_http_loop_free(t->loop);
    close(t->listen_fd);
    SSL_CTX_free(t->ctx);
    X509_free(t->cert);
    EVP_PKEY_free(t->key);
    unlink(t->pem);
    rmdir(t->dir);
    free(t);
    return 0;
}

static tl_http_req *run(tls *t, const char *ca, bool insecure) {
    tl_http_req *r = NULL;
    const tl_http_spec spec = {.url = t->url, .body = "{}", .body_len = 2, .total_ns = 10 * TL_S, .ca_file = ca,
                               .insecure = insecure, .max_body = 4096};
    assert_int_equal(tl_thread_start(&t->thread, serve, t, NULL), TL_OK);
    assert_int_equal(tl_http_prepare(&r, t->loop, &spec, NULL), TL_OK);
    tl_http_open(r);
    assert_int_equal(tl_http_loop_run(t->loop, NULL, NULL), TL_OK);
    assert_true(tl_http_is_open(r));
    tl_http_start(r, 0);
    assert_int_equal(tl_http_loop_run(t->loop, NULL, NULL), TL_OK);
    tl_thread_join(t->thread);
    return r;
}

static void a_trusted_server_streams(void **state) {
    tls *t = *state;
    tl_http_req *r = run(t, t->pem, false);
    const tl_http_log *log = tl_http_result(r);
    if (log->outcome != TL_HTTP_COMPLETE) fail_msg("%s", log->error);
    assert_string_equal(log->body, "data: a\n\ndata: b\n\n");
    assert_int_equal(log->connects, 1);
    assert_true(log->preopened);
    assert_true(log->t_connected_ns <= log->t_start_ns); /* TCP before, TLS after the start */
    assert_true(log->t_ready_ns > log->t_start_ns && log->t_sent_ns >= log->t_ready_ns);
    assert_true(log->reads[log->n_reads - 1].t_ns - log->reads[0].t_ns > 5 * TL_MS);
    tl_http_free(r);
}

static void an_unknown_certificate_is_refused(void **state) {
    tls *t = *state;
    tl_http_req *r = run(t, NULL, false);
    assert_int_equal(tl_http_result(r)->outcome, TL_HTTP_PROTOCOL);
    assert_non_null(strstr(tl_http_result(r)->error, "certificate"));
    assert_int_equal(tl_http_result(r)->body_len, 0);
    tl_http_free(r);
    r = run(t, NULL, true);
    assert_int_equal(tl_http_result(r)->outcome, TL_HTTP_COMPLETE);
    tl_http_free(r);
}

static void a_cut_stream_is_not_complete(void **state) {
    tls *t = *state;
    t->cut = true;
    tl_http_req *r = run(t, t->pem, false);
    assert_string_equal(tl_http_result(r)->body, "data: a\n\n");
    if (tl_http_result(r)->outcome != TL_HTTP_CLOSED_EARLY)
        fail_msg("%s: %s", tl_http_outcome_name(tl_http_result(r)->outcome), tl_http_result(r)->error);
    tl_http_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_trusted_server_streams, up, down),
        cmocka_unit_test_setup_teardown(an_unknown_certificate_is_refused, up, down),
        cmocka_unit_test_setup_teardown(a_cut_stream_is_not_complete, up, down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
