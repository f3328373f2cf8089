/* The yardsticks: LinUCB replayed by a C loop, conversions kept in a list a round. Same updates in the same order as the
   package's; ties go to the lowest index. Plain, it scores every action of every display. With LAZY, it is the fastest
   loop that we know to write: the logged action is scored first and the last winner next, by its mean alone where that
   is more; the vectors of later displays are fetched ahead; and d is the constant LAZY. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline double mean_of(const double *theta, const double *a, int64_t d) {
    double mean = 0.0;
    for (int64_t i = 0; i < d; i++) mean += theta[i] * a[i];
    return mean;
}

static inline double width_of(const double *inverse, const double *a, int64_t d) {
    double norm = 0.0;
    for (int64_t i = 0; i < d; i++) {
        double off = 0.0;
        for (int64_t j = 0; j < i; j++) off += inverse[i * d + j] * a[j];
        norm += a[i] * (2.0 * off + inverse[i * d + i] * a[i]);
    }
    return sqrt(norm > 0.0 ? norm : 0.0);
}

#ifdef LAZY
static inline int beats(const double *theta, const double *inverse, double alpha, const double *x, int64_t d, int64_t k,
                        int64_t own, double top) {
    double mean = mean_of(theta, x + k * d, d);
    if (mean > top) return 1;
    double score = mean + alpha * width_of(inverse, x + k * d, d);
    return score > top || (score == top && k < own);
}

static inline void fetch(const double *vector, int64_t d) {
    __builtin_prefetch(vector);
    __builtin_prefetch(vector + d - 1);
}
#endif

int64_t replay(int64_t n, int64_t K, int64_t length, const int32_t *action, const double *vectors, const int64_t *first,
               const int64_t *delay, double alpha, double ridge, int64_t window, int64_t *accepted) {
#ifdef LAZY
    const int64_t d = LAZY;
    int64_t rival = 0;
#else
    const int64_t d = length;
#endif
    double *inverse = calloc(d * d, 8), *moment = calloc(d, 8), *theta = calloc(d, 8), *u = calloc(d, 8);
    for (int64_t i = 0; i < d; i++) inverse[i * d + i] = 1.0 / ridge;
    int64_t ring = window + 1, capacity = first[n] + 1, slots = 0, rounds = 0;
    int64_t *head = malloc(ring * 8), *tail = malloc(ring * 8), *next = malloc(capacity * 8);
    const double **shown = malloc(capacity * sizeof(double *));
    memset(head, -1, ring * 8);
    for (int64_t t = 0; t < n; t++) {
        const double *x = vectors + t * K * d, *a = x + action[t] * d;
#ifdef LAZY
        int64_t own = action[t], k;
        if (t + 8 < n) {
            fetch(x + 8 * K * d + action[t + 8] * d, d);
            fetch(x + 8 * K * d + rival * d, d);
        }
        double top = mean_of(theta, a, d) + alpha * width_of(inverse, a, d);
        if (rival != own && beats(theta, inverse, alpha, x, d, rival, own, top)) continue;
        for (k = 0; k < K; k++)
            if (k != own && k != rival && beats(theta, inverse, alpha, x, d, k, own, top)) break;
        rival = k < K ? k : own;
        if (k < K) continue;
#else
        int64_t best = 0;
        double top = -INFINITY;
        for (int64_t k = 0; k < K; k++) {
            double score = mean_of(theta, x + k * d, d) + alpha * width_of(inverse, x + k * d, d);
            if (score > top) { top = score; best = k; }
        }
        if (best != action[t]) continue;
#endif
        double denominator = 1.0, gain = 0.0;
        for (int64_t i = 0; i < d; i++) {
            double total = 0.0;
            for (int64_t j = 0; j < d; j++) total += inverse[i * d + j] * a[j];
            u[i] = total;
            denominator += a[i] * total;
            gain += total * moment[i];
        }
        for (int64_t i = 0; i < d; i++) {
            double scaled = u[i] / denominator;
            theta[i] -= scaled * gain;
            for (int64_t j = 0; j < i; j++) {
                inverse[i * d + j] -= scaled * u[j];
                inverse[j * d + i] -= scaled * u[j];
            }
            inverse[i * d + i] -= scaled * u[i];
        }
        accepted[rounds++] = t;
        for (int64_t c = first[t]; c < first[t + 1]; c++) {
            if (delay[c] > window) continue;
            int64_t at = (rounds + delay[c]) % ring, slot = slots++;
            next[slot] = -1;
            shown[slot] = a;
            if (head[at] < 0) head[at] = slot; else next[tail[at]] = slot;
            tail[at] = slot;
        }
        int64_t now = rounds % ring;
        for (int64_t slot = head[now]; slot >= 0; slot = next[slot]) {
            const double *b = shown[slot];
            for (int64_t i = 0; i < d; i++) moment[i] += b[i];
            for (int64_t i = 0; i < d; i++) {
                double total = 0.0;
                for (int64_t j = 0; j < d; j++) total += inverse[i * d + j] * b[j];
                theta[i] += total;
            }
        }
        head[now] = -1;
    }
    free(inverse); free(moment); free(theta); free(u); free(head); free(tail); free(next); free(shown);
    return rounds;
}
