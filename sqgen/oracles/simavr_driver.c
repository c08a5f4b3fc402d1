/*
 * simavr_driver: runs AVR code inside libsimavr on behalf of sqgen/oracles/simavr.py.
 *
 * One batch comes in on stdin, one answer per request goes out on stdout, both binary and little-endian.
 * simavr's own chatter goes to stderr.  The exit code is 0, or 2
 * for a batch that cannot be done, 3 for code that the part has no room for; the reason is the last line of stderr.
 *
 *   batch  := 'C' part call_head request*        call a routine, once per request
 *           | 'S' part count:u32 state*          execute one instruction, once per state
 *           | 'R' part                           say where the RAM is
 *   part   := length:u8 name
 *   call_head := base:u32 image:bytes entry:u32 sp:u16 interrupts:u8 floor:u16 seed:u64 limit:u32 count:u32
 *   request   := registers[32] sreg:u8 buffers ranges
 *   state     := code:bytes pc:u32 registers[32] sreg:u8 sp:u16 buffers
 *   buffers   := count:u16 (address:u16 bytes)*
 *   ranges    := count:u16 (address:u16 length:u16)*
 *   bytes     := length:u32 byte*
 *
 *   answer to a request := stop:u8 machine low_sp:u16 instructions:u32 path:u64 touched:u64 last:u32 memory
 *                          and after the first one: count:u32 (pc:u32 cycles:u64)*
 *   answer to a state   := machine memory
 *   answer to 'R'       := first:u16 last:u16
 *   machine := fault:(length:u8 text) registers[32] sreg:u8 sp:u16 pc:u32 cycles:u64
 *   memory  := the bytes of each range (request) or buffer (state), without lengths
 *
 * All addresses are byte addresses; pc counts from the start of flash.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <simavr/sim_avr.h>
#include <simavr/sim_core.h>

enum { EXIT_REFUSED = 2, EXIT_TOO_LARGE = 3 };
enum { STOP_RETURNED = 0, STOP_LIMIT = 1, STOP_CRASHED = 2 };

/* simavr reports an access outside RAM or flash and then performs it all the same, so both arrays must
 * cover every address that an instruction can form: 16 bits of data space, 24 bits of RAMPZ:Z. */
enum { DATA_BYTES = 0x10000, FLASH_BYTES = 0x1000000 };

/* HANDLER_BYTES, given by -D: what an interrupt handler is taken to need at the least, even under a stack
 * pointer that lies beneath the declared floor. */

enum { JUNK_BYTES = 2 * DATA_BYTES };

typedef struct {
    uint16_t address;
    uint32_t length;
} range_t;

typedef struct {
    uint32_t base, length, entry; /* image placement, bytes */
    uint16_t sp, floor;
    bool interrupts;
    uint64_t seed;
    uint32_t limit; /* instructions */
} call_t;

typedef struct {
    int stop;
    uint64_t cycles, path, touched; /* hashes of places executed, and of addresses of data */
    uint32_t instructions, last; /* last: where the last one stands in the image */
    uint16_t low_sp;
} run_t;

static char part[256]; /* simavr's name for it */
static avr_t *avr;
static FILE *out;
static uint8_t junk[JUNK_BYTES];
static char fault[128]; /* why the current run cannot go on; empty when all is well */
static range_t ranges[0x10000];

/* ---- input and output ------------------------------------------------------------------------------- */

static void end(int code, const char *message) {
    fflush(stdout); /* what simavr printed comes first */
    fprintf(stderr, "simavr driver: %s: %s\n", part, message);
    exit(code);
}

static void die(const char *message) { end(EXIT_REFUSED, message); }

static void get_bytes(void *to, size_t count) {
    if (fread(to, 1, count, stdin) != count)
        die("batch ends early");
}

static uint64_t get(int bytes) {
    uint8_t raw[8];
    uint64_t value = 0;
    get_bytes(raw, bytes);
    for (int i = bytes; i-- > 0;)
        value = value << 8 | raw[i];
    return value;
}

static void put_bytes(const void *from, size_t count) {
    if (fwrite(from, 1, count, out) != count)
        die("answer cannot be written");
}

static void put(int bytes, uint64_t value) {
    uint8_t raw[8];
    for (int i = 0; i < bytes; i++, value >>= 8)
        raw[i] = (uint8_t)value;
    put_bytes(raw, bytes);
}

/* ---- the machine ------------------------------------------------------------------------------------ */

/* simavr passes over an unknown opcode with nothing but a message, so its messages are the only sign.
 * The first one says what happened; "avr_sadly_crashed" only follows it. */
static void note_fault(avr_t *from, const int level, const char *format, va_list args) {
    (void)from;
    if (level > LOG_ERROR || level == LOG_OUTPUT || fault[0])
        return;
    vsnprintf(fault, sizeof fault, format, args);
}

static uint64_t next_random(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void fill_junk(uint64_t seed) {
    for (size_t i = 0; i < JUNK_BYTES; i += 8) {
        uint64_t word = next_random(&seed);
        memcpy(junk + i, &word, 8);
    }
}

static void build_machine(void) {
    get_bytes(part, get(1));
    avr_global_logger_set(note_fault);
    avr = avr_make_mcu_by_name(part);
    if (!avr)
        die("simavr has no such part, see `simavr --list-cores`");
    avr_init(avr);
    avr->data = realloc(avr->data, DATA_BYTES);
    free(avr->flash);
    avr->flash = calloc(FLASH_BYTES + 4, 1);
    if (!avr->data || !avr->flash)
        die("out of memory");
    memset(avr->flash, 0xff, avr->flashend + 1);
    avr->run_cycle_limit = 1; /* else avr_run_one may run on into the next instruction */
}

/* The same machine for every run: I/O as after reset, RAM full of junk that does not depend on the batch. */
static void reset_machine(void) {
    avr_reset(avr);
    memcpy(avr->data + avr->ioend + 1, junk, avr->ramend - avr->ioend);
    avr->state = cpu_Running;
    avr->interrupt_state = 0;
    fault[0] = 0;
}

static uint16_t stack_pointer(void) { return avr->data[R_SPL] | avr->data[R_SPH] << 8; }

static void set_stack_pointer(uint16_t sp) {
    avr->data[R_SPL] = (uint8_t)sp;
    avr->data[R_SPH] = sp >> 8;
}

static uint16_t opcode_at(uint32_t pc) { return avr->flash[pc] | avr->flash[pc + 1] << 8; }

static void get_registers(void) {
    get_bytes(avr->data, 32);
    uint8_t sreg = get(1);
    for (int bit = 0; bit < 8; bit++)
        avr->sreg[bit] = sreg >> bit & 1;
}

/* Reads buffers into data memory and leaves their places in `ranges`; returns how many. */
static uint32_t get_buffers(void) {
    uint32_t count = get(2);
    for (uint32_t i = 0; i < count; i++) {
        ranges[i].address = get(2);
        ranges[i].length = get(4);
        if (ranges[i].address + (uint64_t)ranges[i].length > avr->ramend + 1u)
            die("a buffer reaches beyond RAM");
        get_bytes(avr->data + ranges[i].address, ranges[i].length);
    }
    return count;
}

static uint32_t get_ranges(void) {
    uint32_t count = get(2);
    for (uint32_t i = 0; i < count; i++) {
        ranges[i].address = get(2);
        ranges[i].length = get(2);
        if (ranges[i].address + ranges[i].length > DATA_BYTES)
            die("a range reaches beyond the data space");
    }
    return count;
}

static void put_machine(uint64_t cycles) {
    uint8_t sreg = 0;
    for (int bit = 0; bit < 8; bit++)
        sreg |= (avr->sreg[bit] & 1) << bit;
    size_t length = strcspn(fault, "\r\n");
    put(1, length);
    put_bytes(fault, length);
    put_bytes(avr->data, 32);
    put(1, sreg);
    put(2, stack_pointer());
    put(4, avr->pc);
    put(8, cycles);
}

static void put_memory(uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        put_bytes(avr->data + ranges[i].address, ranges[i].length);
}

/* Executes the instruction at avr->pc; returns its cycles.  If it cannot be, sets `fault` and stays at it. */
static uint32_t execute(void) {
    static const uint16_t opcode_break = 0x9598;
    avr_cycle_count_t before = avr->cycle;
    bool is_break = opcode_at(avr->pc) == opcode_break;
    avr->run_cycle_count = 0;
    avr_flashaddr_t next = avr_run_one(avr);
    if (is_break && !fault[0]) /* simavr takes it for a NOP when no debugger is attached */
        snprintf(fault, sizeof fault, "break instruction");
    else if (avr->state == cpu_Sleeping && !fault[0])
        snprintf(fault, sizeof fault, "sleep instruction");
    else if (avr->state != cpu_Running && !fault[0])
        snprintf(fault, sizeof fault, "simavr stopped in state %d", avr->state);
    if (!fault[0])
        avr->pc = next;
    return (uint32_t)(avr->cycle - before);
}

/* ---- call ------------------------------------------------------------------------------------------- */

/* What a handler leaves behind: registers and SREG as they were, junk in all that it may have pushed over. */
static void act_out_interrupt(uint16_t floor, uint64_t serial) {
    int sp = stack_pointer(), ram_start = avr->ioend + 1;
    if (sp < ram_start || sp > avr->ramend) {
        snprintf(fault, sizeof fault, "interrupt with the stack pointer outside RAM at 0x%04x", sp);
        return;
    }
    int start = sp + 1 - HANDLER_BYTES < floor ? sp + 1 - HANDLER_BYTES : floor;
    if (start < ram_start)
        start = ram_start;
    memcpy(avr->data + start, junk + serial * 7919 % DATA_BYTES, sp + 1 - start);
}

static bool is_out(uint16_t opcode) { return (opcode & 0xf800) == 0xb800; }

static bool is_out_to_sp(uint16_t opcode) {
    static const uint16_t mask = 0xfe0f, out_spl = 0xbe0d, out_sph = 0xbe0e;
    return (opcode & mask) == out_spl || (opcode & mask) == out_sph;
}

static uint64_t mix(uint64_t hash, uint64_t value) { return (hash ^ value) * UINT64_C(0x100000001b3); } /* FNV-1a */

/* Where the low byte of the register pair lies whose value is the address that an instruction reads or writes, -1 if it
 * touches no data, or at an address that stands in the code. */
static int pointer_of(uint16_t opcode) {
    enum { X = 26, Y = 28, Z = 30 };
    if ((opcode & 0xd000) == 0x8000) /* LDD, STD */
        return opcode & 8 ? Y : Z;
    if ((opcode & 0xffdf) == 0x95c8 || opcode == 0x95d8) /* LPM, SPM, ELPM without operands */
        return Z;
    if ((opcode & 0xfe0e) == 0x940e || (opcode & 0xf000) == 0xd000)
        return R_SPL; /* CALL, RCALL */
    if ((opcode & 0xffef) == 0x9508 || (opcode & 0xffef) == 0x9509) /* RET, RETI; ICALL */
        return R_SPL;
    if ((opcode & 0xfc00) != 0x9000)
        return -1;
    int mode = opcode & 15;
    if (mode == 15) /* PUSH, POP */
        return R_SPL;
    return mode == 0 ? -1 : mode <= 7 ? Z : mode <= 11 ? Y : X; /* LDS and STS; LD, ST, LPM, ELPM, XCH and its like */
}

/* Runs from avr->pc until `sentinel`; adds each instruction's cycles to at[(pc - base) / 2] unless NULL. */
static run_t run_call(const call_t *call, uint32_t sentinel, uint64_t *at) {
    run_t run = {.stop = STOP_LIMIT, .low_sp = stack_pointer(), .path = UINT64_C(0xcbf29ce484222325)};
    run.touched = run.path;
    bool shadow = false; /* the instruction after the one that sets I is never interrupted */
    bool half_written = false; /* SP moves by two OUTs, perhaps with OUT SREG between: no depth until both */
    while (avr->pc != sentinel && run.instructions < call->limit && !fault[0]) {
        uint32_t pc = avr->pc, offset = pc - call->base;
        if (offset >= call->length || offset & 1) {
            snprintf(fault, sizeof fault, "pc left the image, at 0x%05x", pc);
            break;
        }
        bool enabled = avr->sreg[S_I];
        if (call->interrupts && enabled && !shadow)
            act_out_interrupt(call->floor, call->seed + run.instructions);
        if (fault[0])
            break;
        run.last = offset;
        run.path = mix(run.path, offset);
        uint16_t opcode = opcode_at(pc);
        int pointer = pointer_of(opcode);
        if (pointer >= 0)
            run.touched = mix(run.touched, (avr->data[pointer] | avr->data[pointer + 1] << 8));
        if (stack_pointer() < run.low_sp && !(half_written && is_out(opcode)))
            run.low_sp = stack_pointer();
        half_written = is_out_to_sp(opcode) ? !half_written : half_written && is_out(opcode);
        uint32_t cycles = execute();
        shadow = !enabled && avr->sreg[S_I];
        run.instructions++;
        run.cycles += cycles;
        if (at)
            at[offset / 2] += cycles;
    }
    if (fault[0])
        run.stop = STOP_CRASHED;
    else if (avr->pc == sentinel)
        run.stop = STOP_RETURNED;
    return run;
}

static void push_return_address(uint16_t sp, uint32_t pc) {
    uint32_t word = pc >> 1;
    for (int i = 0; i < avr->address_size; i++, word >>= 8)
        avr->data[sp--] = (uint8_t)word;
    set_stack_pointer(sp);
}

static void put_cycles_at(const uint64_t *at, uint32_t words) {
    uint32_t used = 0;
    for (uint32_t i = 0; i < words; i++)
        used += at[i] != 0;
    put(4, used);
    for (uint32_t i = 0; i < words; i++)
        if (at[i]) {
            put(4, 2 * i);
            put(8, at[i]);
        }
}

static void answer_request(const call_t *call, uint64_t *at) {
    uint32_t sentinel = avr->flashend - 1; /* the last word of flash, which load_image keeps free */
    reset_machine();
    get_registers();
    get_buffers();
    uint32_t asked = get_ranges();
    push_return_address(call->sp, sentinel);
    avr->pc = call->base + call->entry;
    run_t run = run_call(call, sentinel, at);
    put(1, run.stop);
    put_machine(run.cycles);
    put(2, run.low_sp);
    put(4, run.instructions);
    put(8, run.path);
    put(8, run.touched);
    put(4, run.last);
    put_memory(asked);
}

static void load_image(call_t *call) {
    call->base = get(4);
    call->length = get(4);
    if (call->base & 1 || call->base + (uint64_t)call->length >= avr->flashend)
        end(EXIT_TOO_LARGE, "the code does not fit in flash");
    get_bytes(avr->flash + call->base, call->length);
}

static void answer_calls(void) {
    call_t call;
    load_image(&call);
    call.entry = get(4);
    call.sp = get(2);
    call.interrupts = get(1);
    call.floor = get(2);
    call.seed = get(8);
    call.limit = get(4);
    if (call.sp > avr->ramend || call.sp < avr->ioend + avr->address_size)
        die("the stack pointer lies outside RAM");
    fill_junk(call.seed);
    uint32_t words = call.length / 2 + 1;
    uint64_t *at = calloc(words, sizeof *at);
    if (!at)
        die("out of memory");
    uint32_t count = get(4);
    for (uint32_t i = 0; i < count; i++) {
        answer_request(&call, i ? NULL : at);
        if (!i)
            put_cycles_at(at, words);
    }
    free(at);
}

/* ---- step ------------------------------------------------------------------------------------------- */

static void answer_state(void) {
    uint8_t code[16];
    uint32_t length = get(4);
    if (length < 2 || length > sizeof code)
        die("a state needs 2 to 16 bytes of code");
    get_bytes(code, length);
    reset_machine();
    avr->pc = get(4);
    if (avr->pc & 1 || avr->pc + (uint64_t)length > avr->flashend + 1u)
        die("a state's code does not fit in flash");
    memcpy(avr->flash + avr->pc, code, length);
    uint32_t start = avr->pc;
    get_registers();
    set_stack_pointer(get(2));
    uint32_t asked = get_buffers();
    put_machine(execute());
    put_memory(asked);
    memset(avr->flash + start, 0xff, length);
}

int main(void) {
    out = fdopen(dup(STDOUT_FILENO), "wb");
    if (!out || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) /* simavr prints to stdout as it pleases */
        die("stdout cannot be set aside");
    int mode = get(1);
    build_machine();
    if (mode == 'C') {
        answer_calls();
    } else if (mode == 'S') {
        fill_junk(0);
        for (uint32_t left = get(4); left > 0; left--)
            answer_state();
    } else if (mode == 'R') {
        put(2, avr->ioend + 1);
        put(2, avr->ramend);
    } else {
        die("unknown batch");
    }
    return fclose(out) == 0 ? 0 : EXIT_REFUSED;
}
