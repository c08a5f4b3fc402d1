// Anneals the order of the runs of squares on AVR: see `tools/order_runs.py`, which reads and writes the answers.
//
//     anneal SEED STEPS HOT COLD LATE < plans > plans
//
// HOT and COLD are the cycles that may be lost in a step, at first and at last; LATE is what a load costs, beside its
// cycles, of a limb that is overwritten by then if r == a.
// A plan is a line of numbers: limbs; how many stages, and their ends; how many runs, and for each how many cells and
// the two indices of each.  One line is a square, three are those of a streamed one.  The changes are those of
// `sqgen/run_order.py` and `schedules/sweeps.py`; the same arguments give the same plans.

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <random>
#include <sstream>
#include <string>

#include "price.h"

using Plans = std::vector<Plan>;

constexpr int WIDTH = 4, NEAR = 6, FAR = 20, PLACES = 3;  // states that are followed; runs
constexpr double OF_STAGES = 0.07, TWICE = 0.25, JOINED = 0.67, OF_ANOTHER = 0.03;  // shares

class Chance {
  public:
    explicit Chance(uint64_t seed) : bits(seed) {}
    double share() { return double(bits() >> 11) / double(1ULL << 53); }
    bool often(double share) { return this->share() < share; }
    int below(size_t count) { return int(bits() % count); }
    int distance(double mean) {
        int far = 1 + int(-std::log(1 - share()) * mean);
        return often(0.5) ? far : -far;
    }
    template <class T> const T& one_of(const std::vector<T>& all) { return all[below(all.size())]; }

  private:
    std::mt19937_64 bits;
};

struct Window {
    int first, last;
    Window(const std::vector<Run>& runs, int at, int reach)
        : first(std::max(0, at - reach)), last(std::min(int(runs.size()), at + reach + 1)) {}
};

void insert(std::vector<Run>& runs, int at, Run run) {
    runs.insert(runs.begin() + std::min(std::max(at, 0), int(runs.size())), std::move(run));
}

bool move_run(std::vector<Run>& runs, Chance& chance) {
    int at = chance.below(runs.size());
    Run run = runs[at];
    runs.erase(runs.begin() + at);
    insert(runs, at + chance.distance(PLACES), run);
    return true;
}

// A cell, often the first or last one of its run, leaves that, for another run or by itself.
bool move_cell(std::vector<Run>& runs, Chance& chance) {
    int at = chance.below(runs.size()), count = int(runs[at].size());
    int place = chance.often(0.3) ? chance.below(count) : chance.often(0.5) ? 0 : count - 1;
    Cell cell = runs[at][place];
    Run below(runs[at].begin(), runs[at].begin() + place), above(runs[at].begin() + place + 1, runs[at].end());
    if (!below.empty() && !above.empty() && chance.often(0.5)) std::swap(below, above);
    runs.erase(runs.begin() + at);
    if (!above.empty()) insert(runs, at, above);
    if (!below.empty()) insert(runs, at, below);
    if (!chance.often(JOINED)) {
        insert(runs, at + chance.distance(PLACES), {cell});
        return true;
    }
    std::vector<int> ends, begins;
    Window near(runs, at, chance.often(0.7) ? NEAR : FAR);
    for (int other = near.first; other < near.last; other++) {
        if (runs[other].back().column() == cell.column() - 2) ends.push_back(other);
        if (runs[other].front().column() == cell.column() + 2) begins.push_back(other);
    }
    if (ends.empty() && begins.empty()) return false;
    int which = chance.below(ends.size() + begins.size());
    if (which < int(ends.size()))
        runs[ends[which]].push_back(cell);
    else
        runs[begins[which - ends.size()]].insert(runs[begins[which - ends.size()]].begin(), cell);
    return true;
}

bool join(std::vector<Run>& runs, Chance& chance) {
    int at = chance.below(runs.size());
    std::vector<int> others;
    Window near(runs, at, NEAR);
    for (int other = near.first; other < near.last; other++)
        if (runs[other].front().column() == runs[at].back().column() + 2) others.push_back(other);
    if (others.empty()) return false;
    int other = chance.one_of(others);
    Run whole = runs[at];
    whole.insert(whole.end(), runs[other].begin(), runs[other].end());
    if (chance.often(0.5)) std::swap(at, other);
    runs[at] = whole;
    runs.erase(runs.begin() + other);
    return true;
}

// Two cells of one column change places.
bool exchange(std::vector<Run>& runs, Chance& chance) {
    int at = chance.below(runs.size());
    Cell& cell = runs[at][chance.below(runs[at].size())];
    std::vector<Cell*> others;
    Window near(runs, at, FAR);
    for (int other = near.first; other < near.last; other++)
        for (Cell& each : runs[other])
            if (other != at && each.column() == cell.column()) others.push_back(&each);
    if (others.empty()) return false;
    std::swap(cell, *chance.one_of(others));
    return true;
}

bool cut(std::vector<Run>& runs, Chance& chance) {
    int at = chance.below(runs.size());
    if (runs[at].size() < 2) return false;
    auto place = runs[at].begin() + 1 + chance.below(runs[at].size() - 1);
    Run below(runs[at].begin(), place), above(place, runs[at].end());
    if (chance.often(0.5)) std::swap(below, above);
    runs[at] = below;
    insert(runs, at + 1, above);
    return true;
}

// The end of a stage moves, or there is one more, or one less.
bool change_stages(Plan& plan, Chance& chance) {
    auto& stages = plan.stages;
    int top = 2 * plan.limbs;
    if (chance.often(0.7) && stages.size() > 1) {
        int at = chance.below(stages.size() - 1);
        int moved = stages[at] + (chance.often(0.5) ? 1 : -1) * (chance.often(0.7) ? 1 : 2);
        if (moved <= (at ? stages[at - 1] : 0) || moved >= stages[at + 1] || moved >= top - 1) return false;
        stages[at] = moved;
    } else if (chance.often(0.5)) {
        int end = 1 + chance.below(top - 2);
        if (std::find(stages.begin(), stages.end(), end) != stages.end()) return false;
        stages.insert(std::upper_bound(stages.begin(), stages.end(), end), end);
    } else if (stages.size() > 1)
        stages.erase(stages.begin() + chance.below(stages.size() - 1));
    return true;
}

// Whether there is such a change.
bool change(Plan& plan, Chance& chance) {
    if (chance.often(OF_STAGES)) return change_stages(plan, chance);
    switch (chance.below(18)) {
        case 0: return cut(plan.runs, chance);
        case 1: return exchange(plan.runs, chance);
        case 2: case 3: return join(plan.runs, chance);
        case 4: case 5: case 6: case 7: case 8: case 9: case 10: return move_cell(plan.runs, chance);
        default: return move_run(plan.runs, chance);
    }
}

// The same for one of three squares, M twice as often; one of as many limbs may be taken for another one.
bool change(Plans& plans, Chance& chance) {
    if (plans.size() == 1) return change(plans[0], chance);
    int which = std::min(chance.below(4), 2), other = chance.below(3);
    if (which != other && plans[which].limbs == plans[other].limbs && chance.often(OF_ANOTHER)) {
        plans[which] = plans[other];
    } else if (!change(plans[which], chance))
        return false;
    auto& stages = plans[1].stages;  // limbs of H below a half are stored, others kept
    return std::find(stages.begin(), stages.end(), plans[0].limbs) != stages.end();
}

Plans anneal(Plans current, Chance& chance, Pricer& price, int64_t steps, double hot, double cold) {
    double cost = price.cycles(current, NEVER_FITS, WIDTH), least = cost;
    if (cost >= NEVER_FITS) throw Cannot("the plan does not fit the registers");
    std::cerr << cost << std::endl;
    Plans best = current;
    for (int64_t step = 0; step < steps; step++) {
        double heat = hot * std::pow(cold / hot, double(step) / double(steps));
        Plans changed = current;
        if (!change(changed, chance) || (chance.often(TWICE) && !change(changed, chance))) continue;
        double limit = cost - heat * std::log(1 - chance.share());
        double found = price.cycles(changed, limit, WIDTH);
        if (found > limit) continue;
        current = std::move(changed);
        cost = found;
        if (cost < least) {
            least = cost;
            best = current;
            std::cerr << cost << std::endl;
        }
    }
    return best;
}

Plan read(const std::string& line) {
    std::istringstream words(line);
    Plan plan;
    int count, cells;
    words >> plan.limbs >> count;
    plan.stages.resize(count);
    for (int& end : plan.stages) words >> end;
    words >> count;
    for (; count; count--) {
        words >> cells;
        Run run(cells);
        for (Cell& cell : run) words >> cell.i >> cell.j;
        plan.runs.push_back(run);
    }
    for (auto& run : plan.runs)
        for (auto& cell : run)
            if (cell.i < 0 || cell.i >= cell.j || cell.j >= plan.limbs) words.setstate(std::ios::failbit);
    if (!words || 2 * plan.limbs >= COLUMNS) throw std::runtime_error("a line is no plan");
    return plan;
}

void write(const Plan& plan) {
    std::cout << plan.limbs << ' ' << plan.stages.size();
    for (int end : plan.stages) std::cout << ' ' << end;
    std::cout << ' ' << plan.runs.size();
    for (auto& run : plan.runs) {
        std::cout << ' ' << run.size();
        for (auto& cell : run) std::cout << ' ' << cell.i << ' ' << cell.j;
    }
    std::cout << '\n';
}

int main(int count, char** words) {
    if (count != 6) {
        std::cerr << "anneal SEED STEPS HOT COLD LATE < plans > plans\n";
        return 2;
    }
    try {
        Plans plans;
        for (std::string line; std::getline(std::cin, line);) plans.push_back(read(line));
        if (plans.size() != 1 && plans.size() != 3) throw std::runtime_error("write one plan, or three");
        Chance chance(std::strtoull(words[1], nullptr, 10));
        int64_t steps = std::strtoll(words[2], nullptr, 10);
        Pricer price(std::atoi(words[5]));
        for (auto& plan : anneal(plans, chance, price, steps, std::atof(words[3]), std::atof(words[4]))) write(plan);
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
