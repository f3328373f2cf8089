/* The yardstick: LinUCB replayed by a plain loop, every action scored, conversions kept in a list a round.
   Same updates in the same order as the package's; ties go to the lowest index. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int64_t replay(int64_t n, int64_t K, int64_t d, const int32_t *action, const double *vectors, const int64_t *first,
               const int64_t *delay, double alpha, double ridge, int64_t window, int64_t *accepted) {
    double *inverse = calloc(d * d, 8), *moment = calloc(d, 8), *theta = calloc(d, 8), *u = calloc(d, 8);
    for (int64_t i = 0; i < d; i++) inverse[i * d + i] = 1.0 / ridge;
    int64_t ring = window + 1, capacity = first[n] + 1, slots = 0, rounds = 0;
    int64_t *head = malloc(ring * 8), *tail = malloc(ring * 8), *next = malloc(capacity * 8);
    const double **shown = malloc(capacity * sizeof(double *));
    memset(head, -1, ring * 8);
    for (int64_t t = 0; t < n; t++) {
        const double *x = vectors + t * K * d;
        int64_t best = 0;
        double top = -INFINITY;
        for (int64_t k = 0; k < K; k++) {
            const double *a = x + k * d;
            double mean = 0.0, norm = 0.0;
            for (int64_t i = 0; i < d; i++) {
                double off = 0.0;
                for (int64_t j = 0; j < i; j++) off += inverse[i * d + j] * a[j];
                norm += a[i] * (2.0 * off + inverse[i * d + i] * a[i]);
                mean += theta[i] * a[i];
            }
            double score = mean + alpha * sqrt(norm > 0.0 ? norm : 0.0);
            if (score > top) { top = score; best = k; }
        }
        if (best != action[t]) continue;
        const double *a = x + best * d;
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
