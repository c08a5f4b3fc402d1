// Whole kernels: one square, or the three of a streamed one and what is between them.
#pragma once

#include "code.h"

struct Kernel {
    Code code;
    int operands = 0;                   // variables that can be loaded again at any time
    std::vector<int> stored;            // by limb of the operand: the operation that overwrites it where r == a
    bool lends = false;                 // two registers more from the last load on; else from FREED on
};

// `sweeps`.
inline Kernel alone(const Plan& plan) {
    Kernel found{{}, plan.limbs, std::vector<int>(2 * plan.limbs, 0), true};
    Code& code = found.code;
    std::vector<int> operand;
    for (int k = 0; k < plan.limbs; k++) operand.push_back(code.variable());
    code.zero = code.fresh();
    form(code, plan, operand, [&](auto&, int first, const std::vector<int>& limbs) {
        for (int limb : limbs) {
            found.stored[first++] = int(code.ops.size());
            code.store(limb);
        }
    });
    return found;
}

// `streamed-karatsuba` (`isa/avr_stream.py`): L, H and M, of halves that may differ by one.
class Streamed {
  public:
    Streamed(const std::vector<Plan>& plans) : half(plans[0].limbs), rest(plans[1].limbs) {
        std::vector<int> low, high;
        for (int k = 0; k < half; k++) low.push_back(code.variable());
        for (int k = 0; k < rest; k++) high.push_back(code.variable());
        code.zero = code.fresh();
        form(code, plans[0], low, [&](auto&, int first, const std::vector<int>& limbs) { take_low(first, limbs); });
        form(code, plans[1], high, [&](auto& leaf, int first, const std::vector<int>& limbs) {
            int last = first + int(limbs.size());
            bool ends = last < half || (last == half && half == 2 * rest - last);
            take_high(first, limbs, ends ? leaf.waiting_square(last) : NONE);
        });
        difference(high);
        form(code, plans[2], operand, [&](auto&, int first, const std::vector<int>& limbs) { middle(first, limbs); });
        if (2 * rest > half) take();
        for (int k = 0; k < 2 * rest - half; k++) {
            code.change(above[k], carried);
            code.store(above[k]);
        }
    }
    Kernel kernel() && { return {std::move(code), half + rest, {}, false}; }

  private:
    struct Chain {
        int mask = NONE;
        bool carry = false;
    };
    Code code;
    const int half, rest;
    std::vector<int> raised, above, operand;
    Chain sums, lifted, less;
    int carries = NONE, carried = NONE;
    bool left = true;

    void run(Chain& chain, int limb, int addend) {
        if (chain.mask != NONE && !chain.carry) {
            code.change(chain.mask);
            chain.carry = true;
        }
        if (addend != NONE || chain.carry) {
            code.change(limb, addend == NONE ? code.zero : addend);
            chain.carry = true;
        }
    }
    void take_low(int first, const std::vector<int>& limbs) {
        for (int limb : limbs)
            if (first++ < half)
                code.store(limb);
            else {
                raised.push_back(limb);
                code.mark(Kind::ROOM, limb);
            }
    }
    void take_high(int first, const std::vector<int>& limbs, int catcher) {
        int index = first, size = 2 * rest;
        for (int limb : limbs) {
            run(sums, limb, index < half ? raised[index] : NONE);
            index++;
        }
        int more = NONE;
        if (catcher != NONE) {
            if (sums.carry) code.change(catcher, code.zero);
            sums = Chain();
        } else if (index < size && sums.carry) {
            if (sums.mask == NONE) sums.mask = code.variable();
            code.emit(NONE, NONE, sums.mask);
            sums.carry = false;
        } else if (index == size && size < 2 * half && sums.carry) {
            more = code.fresh();
            code.change(more, code.zero);
        }
        for (int limb : limbs)
            if (first++ < half)
                code.store(limb);
            else {
                code.mark(Kind::ROOM, limb);
                above.push_back(limb);
            }
        if (more != NONE) above.push_back(more);
    }
    void difference(const std::vector<int>& high) {
        for (int first = 0; first < half; first += GROUP) {
            int end = std::min(half, first + GROUP);
            for (int k = first; k < end; k++) operand.push_back(code.fresh(ACCESS));
            for (int k = first; k < end; k++) code.change(operand[k], k < rest ? high[k] : code.zero);
        }
        int sign = code.fresh();
        for (int times = 0; times < 2; times++)
            for (int limb : operand) code.change(limb, sign);
        for (int limb : operand) code.mark(Kind::ROOM, limb);
        code.mark(Kind::FREED);
    }
    bool take() {
        if (carries == NONE) return false;
        code.change(carries);
        return true;
    }
    bool swap() {
        if (take()) return true;
        carries = code.fresh();
        return false;
    }
    void middle(int first, const std::vector<int>& limbs) {
        int last = first + int(limbs.size());
        std::vector<int> bounds{first, last, std::min(std::max(first, half), last)};
        for (int begin = first; begin < last; begin += GROUP) bounds.push_back(begin);
        std::sort(bounds.begin(), bounds.end());
        bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
        bool carry = false;
        for (size_t at = 0; at + 1 < bounds.size(); at++)
            carry = group(bounds[at], bounds[at + 1], &limbs[bounds[at] - first], carry, bounds[at + 1] < last);
    }
    bool group(int begin, int end, const int* limbs, bool carry, bool more) {
        bool upper = begin >= half, subtract = left;
        std::vector<int> found;
        auto addend = [&](bool of_m, int at) {
            size_t index = begin - half + at;
            return of_m ? limbs[at] : !upper ? code.fresh(ACCESS) : index < above.size() ? above[index] : NONE;
        };
        Chain &one = subtract ? less : lifted, &other = subtract ? lifted : less;
        one.carry = carry || take();
        for (int at = 0; at < end - begin; at++) {
            found.push_back(code.fresh(ACCESS));
            run(one, found[at], addend(subtract, at));
        }
        other.carry = swap();
        for (int at = 0; at < end - begin; at++) run(other, found[at], addend(!subtract, at));
        bool stays = more && 2 * half + 2 * rest <= REACHED;
        if (end == 2 * half)
            carried = code.fresh();
        else if (!stays)
            swap();
        left = !left;
        for (int k = begin; k < std::min(end, half); k++) code.mark(Kind::OWN, operand[k]);
        for (int limb : found) code.store(limb);
        return stays;
    }
};

inline Kernel kernel(const std::vector<Plan>& plans) {
    return plans.size() == 1 ? alone(plans[0]) : Streamed(plans).kernel();
}
