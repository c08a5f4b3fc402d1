// The operations of a square whose runs come in any order, as numbers: what `isa/avr_runs.py`, `avr_squares.py` and
// `avr_stream.py` make of a plan, without names.  An operation reads at most two variables and writes one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

constexpr int NONE = -1, IN_R0 = -2, IN_R1 = -3;  // no variable; a limb of the product that was formed last
constexpr int COLUMNS = 80, GROUP = 8, REACHED = 64;
constexpr int ACCESS = 2, MULTIPLY = 2, AROUND = 3;  // cycles; pointers at the start and r1 at the end
constexpr int64_t LIMB = 255, PRODUCT = LIMB * LIMB;
constexpr int64_t LATER = 1 << 29;  // a time that never comes

struct Cell {
    int i, j;
    int column() const { return i + j; }
    int key() const { return i * COLUMNS + j; }
};
using Run = std::vector<Cell>;

struct Plan {
    int limbs;
    std::vector<Run> runs;
    std::vector<int> stages;
};

// PLAIN ones compute; at ROOM a variable gets a place in memory, at OWN it leaves that; FREED: two registers more.
enum class Kind { PLAIN, ROOM, OWN, FREED };

struct Op {
    int reads[2], writes;
    Kind kind;
};

struct Cannot : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// A list of operations and what they take.
struct Code {
    std::vector<Op> ops;
    std::vector<int> mates;  // by variable: the one that is moved with it, above it
    int cycles = AROUND;
    int zero = NONE;

    int variable() {
        mates.push_back(NONE);
        return int(mates.size()) - 1;
    }
    void emit(int one, int other, int writes, int takes = 1) {
        if (one < 0) std::swap(one, other);
        ops.push_back({{one < 0 ? NONE : one, other < 0 || other == one ? NONE : other}, writes, Kind::PLAIN});
        cycles += takes;
    }
    void mark(Kind kind, int variable = NONE) { ops.push_back({{variable, NONE}, NONE, kind}); }
    void change(int variable, int by = NONE) { emit(variable, by, variable); }
    int fresh(int takes = 1) {
        int found = variable();
        emit(NONE, NONE, found, takes);
        return found;
    }
    int pair() {  // r1:r0 is moved to two registers, as one if they are neighbours
        int low = fresh(), high = fresh();
        mates[low] = high;
        cycles -= 1;
        return low;
    }
    void store(int variable) { emit(variable, NONE, NONE, ACCESS); }
};

// How large limbs of the sum can get (`sqgen/bounds.py`).
struct Sum {
    std::array<int64_t, COLUMNS> whole{}, low{};
    int lowest = 0;

    void add_product(int column) {
        whole[column] += PRODUCT;
        low[column] += LIMB;
    }
    void drop(int column) {
        int64_t above = whole[column] >> 8;
        whole[column] = low[column] = 0;
        whole[column + 1] += above;
        low[column + 1] += above;
        lowest = column + 1;
    }
    bool carries(int column) const {
        int64_t carried = 0;
        for (int at = lowest; at < column; at++) carried = (carried + whole[at]) >> 8;
        return (carried + low[column]) >> 8;
    }
};

struct Addend {
    int column, limb;
};

// One square.  `Out` takes its limbs: out(first column, limbs).
template <class Out> class Leaf {
  public:
    Leaf(Code& code, const Plan& plan, const std::vector<int>& operand, Out&& out)
        : code(code), plan(plan), operand(operand), out(out), top(2 * plan.limbs - 1) {
        limbs.fill(NONE);
        parked.fill({NONE, NONE});
    }

    void all_steps() {
        std::array<int, COLUMNS> left{};
        for (auto& run : plan.runs)
            for (auto& cell : run) left[cell.column()]++;
        int complete = 0, done = 0;
        auto stage = plan.stages.begin();
        auto ready = [&] {
            while (complete < COLUMNS && !left[complete]) complete++;
            return stage != plan.stages.end() && complete >= *stage;
        };
        for (size_t at = 0; at < plan.runs.size(); at++) {
            for (auto& cell : plan.runs[at]) left[cell.column()]--;
            bool next = at + 1 < plan.runs.size() && !ready();
            add_run(plan.runs[at], next ? &plan.runs[at + 1].back() : nullptr);
            for (; ready(); done = *stage++) finish(done, *stage);
        }
        if (stage != plan.stages.end()) throw Cannot("a stage does not end");
    }

    // The low limb of the square that begins at a column, if it waits.
    int waiting_square(int column) const { return column % 2 ? NONE : find({column / 2, column / 2}); }

  private:
    Code& code;
    const Plan& plan;
    const std::vector<int>& operand;
    Out& out;
    const int top;
    Sum sum;
    std::array<int, COLUMNS> limbs;
    std::array<std::pair<int, int>, 8> parked;  // products that wait: key, low limb
    bool bit_in_t = false;
    int doubling_mask = NONE, mask = NONE;
    Addend waiting{NONE, NONE};

    // ---- runs

    bool empty(int column) const { return limbs[column] == NONE; }
    int find(const Cell& cell) const {
        for (auto& [key, limb] : parked)
            if (limb != NONE && key == cell.key()) return limb;
        return NONE;
    }
    int form(const Cell& cell) {
        multiply(cell);
        return code.pair();
    }
    int put_by(const Cell& cell) {
        int low = form(cell);
        for (auto& place : parked)
            if (place.second == NONE) {
                place = {cell.key(), low};
                return low;
            }
        throw Cannot("too many products wait");
    }
    int take(const Cell& cell) {
        for (auto& place : parked)
            if (place.second != NONE && place.first == cell.key()) return std::exchange(place.second, NONE);
        return form(cell);
    }
    void multiply(const Cell& cell) { code.emit(operand[cell.i], operand[cell.j], NONE, MULTIPLY); }
    bool add(int column, int limb) {
        code.change(limbs[column], limb);
        return true;
    }
    bool add_limb(int column, int addend, bool carry) {
        if (carry && !sum.carries(column - 1)) carry = false;
        if (!empty(column)) return add(column, addend);
        limbs[column] = addend >= 0 ? addend : code.fresh();
        return carry && add(column, code.zero);
    }
    void ripple(int column, bool carry) {
        while (carry && sum.carries(column)) {
            if (++column == COLUMNS) throw Cannot("carries run on");
            if (empty(column)) limbs[column] = code.fresh();
            carry = add(column, code.zero);
        }
    }

    void add_run(const Run& run, const Cell* following) {
        std::vector<Addend> addends;  // the first of which has waited
        for (size_t at = 0; at < run.size();) {
            const Cell& cell = run[at];
            if (addends.empty() && find(cell) == NONE && empty(cell.column()) && empty(cell.column() + 1)) {
                sum.add_product(cell.column());
                limbs[cell.column()] = form(cell);
                limbs[cell.column() + 1] = limbs[cell.column()] + 1;
                at++;
                continue;
            }
            bool parked_end = find(run.back()) != NONE || empty(run.back().column() + 1);
            size_t left = run.size() - at, size = left == 3 && parked_end ? 3 : std::min<size_t>(left, 2);
            Run chain(run.begin() + at, run.begin() + at + size);
            at += size;
            bool last = at == run.size();
            for (auto& each : chain) sum.add_product(each.column());
            int catcher = last ? caught_by(chain.back().column() + 1, following) : NONE;
            add_products(chain, !last, addends);
            add_chain(addends, last, catcher);
        }
    }
    // Which product need not be parked: the lowest one whose limbs are added to others.
    int kept(const Run& chain, bool last_waits) const {
        int candidate = NONE;
        for (int at = int(chain.size()) - 1; at >= 0; at--)
            if (find(chain[at]) == NONE) candidate = at;
        for (int at = 0; at < int(chain.size()); at++) {
            int column = chain[at].column();
            bool waits = last_waits && at == int(chain.size()) - 1;
            if (find(chain[at]) == NONE && !empty(column) && !empty(column + 1) && !waits) return at;
        }
        return candidate;
    }
    void add_products(const Run& chain, bool last_waits, std::vector<Addend>& addends) {
        int stays = kept(chain, last_waits), count = int(chain.size());
        std::vector<std::pair<int, int>> pairs(count);
        for (int at = count - 1; at >= 0; at--)
            if (at != stays) {
                int low = take(chain[at]);
                pairs[at] = {low, low + 1};
            }
        if (stays != NONE) {
            multiply(chain[stays]);
            pairs[stays] = {IN_R0, last_waits && stays == count - 1 ? code.fresh() : IN_R1};
        }
        for (int at = 0; at < count; at++) {
            addends.push_back({chain[at].column(), pairs[at].first});
            addends.push_back({chain[at].column() + 1, pairs[at].second});
        }
    }
    int caught_by(int above, const Cell* following) {
        bool ends_above = !empty(above + 1) && !sum.carries(above + 1);
        if (!following || following->column() != above || find(*following) != NONE) return NONE;
        return ends_above || !sum.carries(above) ? NONE : put_by(*following) + 1;
    }
    void add_chain(std::vector<Addend>& addends, bool last, int catcher) {
        bool carry = false;
        Addend highest = addends.back();
        for (size_t at = 0; at + 1 < addends.size(); at++) carry = add_limb(addends[at].column, addends[at].limb, carry);
        addends.clear();
        if (!last && highest.limb >= 0 && !empty(highest.column)) {
            if (carry) code.change(highest.limb, code.zero);
            addends.push_back(highest);
            return;
        }
        carry = add_limb(highest.column, highest.limb, carry);
        if (catcher != NONE && carry && sum.carries(highest.column))
            code.change(catcher, code.zero);
        else
            ripple(highest.column, carry);
    }

    // ---- the end of a stage

    void finish(int first, int last) {
        Run diagonal;
        for (int i = (first + 1) / 2; i < (last + 1) / 2; i++) diagonal.push_back({i, i});
        if (last > top && !diagonal.empty() && find(diagonal.back()) == NONE) put_by(diagonal.back());
        int catcher = last % 2 || last > top ? NONE : put_by({last / 2, last / 2});
        double_limbs(first, last, diagonal, catcher);
        bool parked_first = first == 0 || (!diagonal.empty() && find(diagonal[0]) != NONE);
        auto chains = in_chains(diagonal, parked_first ? 3 : 2, last % 2 == 1 || last > top);
        for (size_t at = 0; at < chains.size(); at++) {
            int end = at + 1 < chains.size() ? chains[at + 1][0].column() - 1 : last;
            add_squares(first, end, chains[at], catcher);
            std::vector<int> leaving;
            for (int column = first; column < end; column++) {
                if (empty(column)) throw Cannot("a limb is missing");
                leaving.push_back(std::exchange(limbs[column], NONE));
            }
            if (!leaving.empty()) out(*this, first, leaving);
            for (int column = first; column < end; column++) sum.drop(column);
            first = end;
        }
    }
    static std::vector<Run> in_chains(const Run& diagonal, int head, bool parked_end) {
        std::vector<Run> chains;
        for (size_t at = 0; at < diagonal.size() || chains.empty();) {
            int left = int(diagonal.size() - at), size = chains.empty() ? head : 2;
            if (parked_end && left % 2 != size % 2 && (!chains.empty() || left - size == 1)) size++;
            size = std::min(size, left);
            chains.emplace_back(diagonal.begin() + at, diagonal.begin() + at + size);
            at += size;
        }
        return chains;
    }
    void double_limbs(int first, int last, const Run& diagonal, int catcher) {
        std::vector<int> columns;
        for (int column = first; column < last; column++)
            if (!empty(column)) columns.push_back(column);
        bool carry = doubling_mask != NONE, incoming = std::exchange(bit_in_t, false);
        if (carry) code.change(std::exchange(doubling_mask, NONE));
        bool keep_in_t = columns.size() > 1 && last <= top && catcher == NONE;
        for (size_t at = 0; at < columns.size(); at++) {
            code.change(limbs[columns[at]]);
            carry = true;
            if (at == 0 && incoming) code.change(limbs[columns[0]]);
            if (at == 0 && keep_in_t) {
                code.emit(limbs[columns.back()], NONE, NONE);
                bit_in_t = true;
            }
        }
        if (last > top)
            double_top(carry, incoming && columns.empty(), diagonal);
        else if (catcher != NONE && carry)
            code.change(catcher, code.zero);
        else if (catcher == NONE && carry && !keep_in_t)
            doubling_mask = code.fresh();
    }
    void double_top(bool carry, bool incoming, const Run& diagonal) {
        int high = !diagonal.empty() ? find(diagonal.back()) + 1 : waiting.column == top ? waiting.limb : NONE;
        if (high == NONE) throw Cannot("the top limb is doubled before its square is formed");
        if (incoming) {
            int bit = code.fresh();
            code.change(bit);
            code.change(high, bit);
        } else if (carry)
            code.change(high, code.zero);
    }
    void add_squares(int first, int end, const Run& chain, int catcher) {
        std::array<int, COLUMNS> at;
        at.fill(NONE);
        std::vector<Addend> addends;
        add_products(chain, !chain.empty() && chain.back().column() + 1 == end, addends);
        for (auto& each : addends) at[each.column] = each.limb;
        if (waiting.column != NONE) at[std::exchange(waiting.column, NONE)] = waiting.limb;
        bool carry = mask != NONE;
        if (carry) code.change(std::exchange(mask, NONE));
        for (int column = first; column < end; column++) {
            int addend = at[column];
            if (empty(column)) {
                if (addend == NONE && !carry) throw Cannot("there is nothing to form a limb from");
                limbs[column] = addend >= 0 ? addend : code.fresh();
                addend = NONE;
            }
            carry = (addend != NONE || carry) && add(column, addend == NONE ? code.zero : addend);
        }
        if (at[end] >= 0) {
            if (carry) code.change(at[end], code.zero);
            waiting = {end, at[end]};
        } else if (catcher != NONE) {
            if (carry) code.change(catcher, code.zero);
        } else if (carry && end <= top)
            mask = code.fresh();
    }
};

template <class Out> void form(Code& code, const Plan& plan, const std::vector<int>& operand, Out out) {
    Leaf<Out>(code, plan, operand, std::move(out)).all_steps();
}
