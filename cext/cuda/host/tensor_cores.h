/* What tensor cores and copies to shared memory do (mma.h), on the host: cuda_on_host.h includes it.
 *
 * A product takes its parts from the lanes of a warp as PTX says they hold them, and adds its terms in float32, in
 * their order; an operand that is not rounded fails the launch.  A copy is done when its thread waits for copies, and
 * no earlier; until then the launch fails where somebody reads what it writes.
 */
#ifndef TENSOR_CORES_H
#define TENSOR_CORES_H

namespace on_host {

inline uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

inline float number_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

enum { BEHIND = 13 }; /* bits of float32 behind those of TF32 */

inline void check_tf32(uint32_t bits) {
    const float x = number_of(bits);
    if (x == x && bits & ((1u << BEHIND) - 1)) fail("a product expected operands rounded to TF32, got %a", x);
}

}  // namespace on_host

inline uint32_t to_tf32(float x) {
    const uint32_t half = 1u << (on_host::BEHIND - 1);
    return x != x ? 0x7fffffffu : (on_host::bits_of(x) + half) & ~(2 * half - 1);
}

inline void multiply_tf32(float (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    on_host::machine &m = on_host::here();
    const int self = m.current->index, lane = self % on_host::WARP, g = lane / 4, t = lane % 4;
    on_host::warp &w = m.warps[self / on_host::WARP];
    const int turn = w.turn[lane] ^= 1;
    NOTE(PRODUCT, nullptr, 0, 1);
    for (uint32_t bits : a) on_host::check_tf32(bits);
    for (uint32_t bits : b) on_host::check_tf32(bits);
    memcpy(w.slots[turn][lane], a, sizeof a);
    memcpy(w.slots[turn][lane] + sizeof a, b, sizeof b);
    __syncwarp();
    const auto of = [&](int from, int part) {
        float x;
        memcpy(&x, w.slots[turn][from] + part * sizeof x, sizeof x);
        return x;
    };
    for (int e = 0; e < 4; e++) {
        const int row = e / 2, column = 2 * t + e % 2; /* of rows 8 apart */
        for (int k = 0; k < 8; k++) sum[e] += of(4 * g + k % 4, row + k / 4 * 2) * of(4 * column + k % 4, 4 + k / 4);
    }
}

inline void wait_for_copies() {
    std::vector<on_host::copy> &copies = on_host::here().current->copies;
    for (const on_host::copy &one : copies) one.finish(one.array, one.at, one.bytes);
    copies.clear();
}

#endif
