// What a kernel takes with registers: who stays in one when (`sqgen/residence.py`), then which it is (`sqgen/beam.py`).
#pragma once

#include <climits>

#include "kernel.h"

constexpr int PAIRS = 14, REGISTERS = 26;  // the last pair is there later
constexpr int HORIZON = 200;               // half operations: what is later than that is not looked at
constexpr int ALONE = 200;                 // half operations of a register that is alone in its pair, worth a cycle
constexpr double WEIGHTS[] = {2.0, 1.2};   // how much nearer the next use may be of what need not be stored
constexpr int NEVER_FITS = INT_MAX / 4;

struct Stay {
    int variable, birth, death, mate;
};

class Residence {
  public:
    std::vector<Stay> stays;
    int traffic = 0, late = 0;
    int opening = LATER;  // when there are two registers more

    // Whether registers suffice.
    bool found(const Kernel& kernel, double weight, int opens) {
        code = &kernel.code;
        operands = kernel.operands;
        saved = weight;
        opening = opens;
        int count = int(code->mates.size());
        stays.clear();
        here.clear();
        traffic = late = 0;
        stay.assign(count, NONE);
        used.assign(count, 0);
        from.assign(count, NONE);
        current.assign(count, false);
        coming();
        for (int at = 0; at < int(code->ops.size()); at++)
            if (!step(kernel, at)) return false;
        return true;
    }
    int last_load = 0;

  private:
    const Code* code = nullptr;
    int operands = 0;
    double saved = 1;
    std::vector<int> here, stay, used, from, next;
    std::vector<bool> current;
    std::vector<std::array<int, 3>> after;  // the next use of what an operation names

    bool has_home(int variable) const { return variable < operands; }

    void coming() {
        next.assign(code->mates.size(), LATER);
        after.resize(code->ops.size());
        for (int at = int(code->ops.size()) - 1; at >= 0; at--) {
            const Op& op = code->ops[at];
            if (op.kind != Kind::PLAIN) continue;
            const int names[] = {op.reads[0], op.reads[1], op.writes};
            for (int k = 0; k < 3; k++)
                if (names[k] >= 0) after[at][k] = next[names[k]];
            for (int name : names)
                if (name >= 0) next[name] = at;
        }
    }
    void leave(int variable) {
        stays[stay[variable]].death = used[variable] + 1;
        stay[variable] = NONE;
        here.erase(std::find(here.begin(), here.end(), variable));
    }
    bool evict(int index, const Op& op) {
        int best = NONE;
        double farthest = -1;
        for (int each : here) {
            if (each == op.reads[0] || each == op.reads[1] || each == op.writes) continue;
            if (!has_home(each) && from[each] == NONE) continue;
            double distance = (next[each] - index) * (has_home(each) || current[each] ? saved : 1);
            if (distance > farthest || (distance == farthest && each > best)) {
                farthest = distance;
                best = each;
            }
        }
        if (best == NONE) return false;
        if (!has_home(best) && !current[best]) {
            int at = std::min(std::max(used[best] / 2, from[best]) + 1, index);
            traffic += ACCESS;
            used[best] = std::max(used[best], 2 * at - 1);
            current[best] = true;
        }
        leave(best);
        return true;
    }
    bool enter(int variable, int time, const Op& op) {
        while (int(here.size()) >= REGISTERS + (time / 2 * 2 >= opening ? 2 : 0))
            if (!evict(time / 2, op)) return false;
        stay[variable] = int(stays.size());
        stays.push_back({variable, time, time + 1, NONE});
        here.push_back(variable);
        return true;
    }
    bool load(const Kernel& kernel, int variable, int at, const Op& op) {
        if ((!has_home(variable) && from[variable] == NONE) || !enter(variable, 2 * at, op)) return false;
        traffic += ACCESS;
        if (has_home(variable)) {
            last_load = at;
            if (!kernel.stored.empty() && kernel.stored[variable] < at) late++;
        }
        return true;
    }
    bool step(const Kernel& kernel, int at) {
        const Op& op = code->ops[at];
        int first = op.reads[0];
        if (op.kind == Kind::FREED) opening = 2 * at;
        if (op.kind == Kind::ROOM) from[first] = at;
        if (op.kind == Kind::OWN) {
            if (next[first] < LATER) {
                if (stay[first] == NONE && !load(kernel, first, at, op)) return false;
                used[first] = 2 * at;
            }
            from[first] = NONE;
            current[first] = false;
        }
        if (op.kind != Kind::PLAIN) return true;
        for (int name : op.reads) {
            if (name < 0) continue;
            if (stay[name] == NONE && !load(kernel, name, at, op)) return false;
            used[name] = 2 * at;
        }
        const int names[] = {op.reads[0], op.reads[1], op.writes};
        for (int k = 0; k < 3; k++)
            if (names[k] >= 0) next[names[k]] = after[at][k];
        for (int name : op.reads)
            if (name >= 0 && name != op.writes && next[name] >= LATER && stay[name] != NONE) leave(name);
        if (int name = op.writes; name >= 0) {
            if (stay[name] == NONE && !enter(name, 2 * at + 1, op)) return false;
            used[name] = 2 * at + 1;
            current[name] = false;
            if (next[name] >= LATER) leave(name);
        }
        return true;
    }
};

// Until when the registers of each pair are in use, and mates that are to be placed apart.
struct State {
    int cost = 0;
    std::array<std::array<int, 2>, PAIRS> until{};
    std::vector<int> apart;
    bool is_apart(int stay) const { return std::find(apart.begin(), apart.end(), stay) != apart.end(); }
};

// What may become of a state; its pairs are not copied before it is among the best.
struct Candidate {
    int parent, cost;
    uint64_t alike;
    double rank;
    std::array<std::array<int, 3>, 2> changes;  // pair, and until when its registers are in use, or NONE
    int apart, together;                        // a mate that is to come apart, one that did
};

// Ways to place stays, the best `width` of which are followed; a state is judged by its pairs, whichever they are.
class Places {
  public:
    // Cycles of moves and of mates that are no neighbours.
    int cost(const std::vector<Stay>& stays, int opening, int width) {
        this->stays = &stays;
        this->opening = opening;
        states.assign(1, {});
        states[0].until[PAIRS - 1] = {opening, opening};
        int before = NONE;
        std::vector<bool> high(stays.size());
        for (auto& each : stays)
            if (each.mate != NONE) high[each.mate] = true;
        for (int stay = 0; stay < int(stays.size()); stay++) {
            int birth = stays[stay].birth;
            auto apart = [&](const State& state) { return state.is_apart(stay); };
            if (high[stay] && birth == before && std::none_of(states.begin(), states.end(), apart)) continue;
            before = birth;
            candidates.clear();
            cleared = states;
            for (int at = 0; at < int(states.size()); at++) consider(at, stay, high[stay]);
            if (candidates.empty()) return NEVER_FITS;
            choose(width);
        }
        int best = NEVER_FITS;
        for (auto& state : states) best = std::min(best, state.cost);
        return best;
    }

  private:
    const std::vector<Stay>* stays = nullptr;
    int opening = 0, birth = 0;
    std::vector<State> states, cleared, chosen;
    std::vector<Candidate> candidates;
    std::array<int, PAIRS> uneven{};
    std::array<uint64_t, PAIRS> hashes{};
    int total = 0;
    uint64_t hash = 0;

    static uint64_t mixed(uint64_t x) {
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
        return x ^ (x >> 31);
    }
    static uint64_t hashed(int one, int other) {
        return mixed(uint64_t(std::min(one, other)) << 32 | uint64_t(std::max(one, other)) | 1ULL << 63);
    }
    static uint64_t hashed(int stay) { return mixed(uint64_t(stay) + 1); }
    int alone(int one, int other) const {
        int first = std::min(one, other), last = std::max(one, other);
        return first ? std::min(last - first, HORIZON) : last ? std::min(last - birth, HORIZON) : 0;
    }

    void propose(int at, int cost, std::array<std::array<int, 3>, 2> changes, int apart = NONE, int together = NONE) {
        Candidate found{at, cost, hash, 0, changes, apart, together};
        int sum = total;
        for (auto& [pair, one, other] : changes)
            if (pair != NONE) {
                found.alike += hashed(one, other) - hashes[pair];
                sum += alone(one, other) - uneven[pair];
            }
        if (apart != NONE) found.alike += hashed(apart);
        if (together != NONE) found.alike -= hashed(together);
        found.rank = cost + double(sum) / ALONE;
        candidates.push_back(found);
    }
    static constexpr std::array<int, 3> NOTHING{NONE, 0, 0};

    void consider(int at, int stay, bool high) {
        const State& before = states[at];
        State& now = cleared[at];
        const Stay& one = (*stays)[stay];
        birth = one.birth;
        total = 0;
        hash = 0;
        for (int pair = 0; pair < PAIRS; pair++) {
            for (int& time : now.until[pair])
                if (time <= birth) time = 0;
            uneven[pair] = alone(now.until[pair][0], now.until[pair][1]);
            hashes[pair] = hashed(now.until[pair][0], now.until[pair][1]);
            total += uneven[pair];
            hash += hashes[pair];
        }
        for (int each : now.apart) hash += hashed(each);
        bool apart = now.is_apart(stay);
        if (high && !apart) return propose(at, now.cost, {NOTHING, NOTHING});  // it came with its mate
        if (one.mate == NONE) return by_itself(at, now.cost, one.death, NONE, apart ? stay : NONE);
        int death = (*stays)[one.mate].death;
        for (int pair = 0; pair < PAIRS; pair++)
            if (!now.until[pair][0] && !now.until[pair][1])
                return propose(at, now.cost, {{{pair, one.death, death}, NOTHING}});
        by_itself(at, now.cost + 1, one.death, one.mate, NONE);
        move_away(at, before, stay, one.death, death);
    }
    // Of registers whose neighbours are free at the same time one will do.
    void by_itself(int at, int cost, int death, int apart, int together) {
        std::vector<int> seen;
        for (int pair = 0; pair < PAIRS; pair++) {
            auto [one, other] = cleared[at].until[pair];
            if (one && other) continue;
            int neighbour = one + other;
            if (std::find(seen.begin(), seen.end(), neighbour) != seen.end()) continue;
            seen.push_back(neighbour);
            propose(at, cost, {{{pair, neighbour, death}, NOTHING}}, apart, together);
        }
    }
    // What is in the way of mates moves beside something else.
    void move_away(int at, const State& before, int stay, int low, int high) {
        const State& now = cleared[at];
        int since = birth / 2 * 2;
        std::vector<int> stuck{opening}, half;
        for (int other = stay - 1; other >= 0 && (*stays)[other].birth >= since - 2; other--)
            for (int each : {other, (*stays)[other].mate})
                if (each != NONE && (*stays)[each].birth >= since) stuck.push_back((*stays)[each].death);
        for (int pair = 0; pair < PAIRS; pair++)
            if (!now.until[pair][0] || !now.until[pair][1]) half.push_back(pair);
        for (int pair : half) {
            int time = now.until[pair][0] + now.until[pair][1];
            if (std::find(stuck.begin(), stuck.end(), time) != stuck.end()) continue;
            std::vector<int> seen;
            for (int to : half) {
                int free = now.until[to][0] ? 1 : 0, neighbour = now.until[to][1 - free];
                if (to == pair || before.until[to][free] > since) continue;
                if (std::find(seen.begin(), seen.end(), neighbour) != seen.end()) continue;
                seen.push_back(neighbour);
                propose(at, now.cost + 1, {{{pair, low, high}, {to, neighbour, time}}});
            }
        }
    }
    // Of those that are alike the cheapest, and of these the best few.
    void choose(int width) {
        std::vector<int> best;
        for (int at = 0; at < int(candidates.size()); at++) {
            auto same = [&](int other) { return candidates[other].alike == candidates[at].alike; };
            auto other = std::find_if(best.begin(), best.end(), same);
            if (other == best.end())
                best.push_back(at);
            else if (candidates[at].cost < candidates[*other].cost)
                *other = at;
        }
        auto better = [&](int one, int other) {
            return std::pair(candidates[one].rank, one) < std::pair(candidates[other].rank, other);
        };
        std::sort(best.begin(), best.end(), better);
        if (int(best.size()) > width) best.resize(width);
        chosen.clear();
        for (int at : best) {
            const Candidate& way = candidates[at];
            State state = cleared[way.parent];
            state.cost = way.cost;
            if (way.together != NONE) state.apart.erase(std::find(state.apart.begin(), state.apart.end(), way.together));
            if (way.apart != NONE) state.apart.push_back(way.apart);
            for (auto& [pair, one, other] : way.changes)
                if (pair != NONE) state.until[pair] = {one, other};
            chosen.push_back(std::move(state));
        }
        states.swap(chosen);
    }
};

// What plans cost, as the compiler finds but for a cycle or two; NEVER_FITS above a limit.
class Pricer {
  public:
    explicit Pricer(int late) : late(late) {}
    int cycles(const std::vector<Plan>& plans, double limit, int width) {
        try {
            Kernel made = kernel(plans);
            if (!resident(made)) return NEVER_FITS;
            int cycles = made.code.cycles + residence.traffic + late * residence.late;
            if (cycles > limit) return NEVER_FITS;
            mate(made.code.mates);
            return cycles + places.cost(residence.stays, residence.opening, width);
        } catch (const Cannot&) {
            return NEVER_FITS;
        }
    }

  private:
    const int late;  // what a limb costs that is loaded from where the result lies, if r == a
    Residence residence;
    Places places;

    bool resident(const Kernel& made) {
        if (!made.lends) {
            int best = NEVER_FITS;
            double chosen = 0;
            for (double weight : WEIGHTS)
                if (residence.found(made, weight, LATER) && residence.traffic < best) {
                    best = residence.traffic;
                    chosen = weight;
                }
            return best < NEVER_FITS && residence.found(made, chosen, LATER);
        }
        if (!residence.found(made, 1, LATER)) return false;
        for (int opens = 2 * residence.last_load + 1;; opens = 2 * residence.last_load + 1) {
            if (!residence.found(made, 1, opens)) return false;
            if (2 * residence.last_load + 1 <= opens) return true;
        }
    }
    void mate(const std::vector<int>& mates) {
        std::vector<int> first(mates.size(), NONE);
        auto& stays = residence.stays;
        for (int at = 0; at < int(stays.size()); at++)
            if (first[stays[at].variable] == NONE) first[stays[at].variable] = at;
        for (int at = 0; at < int(stays.size()); at++) {
            int mate = mates[stays[at].variable];
            if (mate != NONE && first[stays[at].variable] == at) stays[at].mate = first[mate];
        }
    }
};
