; Multiplies 24 by 24 bits into a frame on the stack and copies it out at the end, so that the result may lie anywhere
; over the operands.  The frame is made and unmade as avr-gcc does it: interrupts are off while SP is half written, and
; OUT SREG before the last OUT is right, since one more instruction runs before the first interrupt.
; void mul24(uint8_t *r, const uint8_t *a, const uint8_t *b)
#define SPL 0x3d
#define SPH 0x3e
#define SREG 0x3f
.global mul24
mul24:
    push r16
    push r17
    push r28
    push r29
    in   r28, SPL
    in   r29, SPH
    sbiw r28, 6
    in   r0, SREG
    cli
    out  SPH, r29
    out  SREG, r0
    out  SPL, r28
    movw r26, r22
    movw r30, r20
    clr  r16                ; always zero
    ldd  r20, Z+0
    ldd  r21, Z+1
    ldd  r22, Z+2
    ld   r17, X+            ; a0
    mul  r17, r20
    std  Y+1, r0
    mov  r18, r1
    clr  r19
    mul  r17, r21
    add  r18, r0
    adc  r19, r1
    std  Y+2, r18
    clr  r18
    mul  r17, r22
    add  r19, r0
    adc  r18, r1
    std  Y+3, r19
    std  Y+4, r18
.irp k, 1, 2
    ld   r17, X+            ; a1, a2
    mul  r17, r20
    ldd  r18, Y+1+\k
    add  r18, r0
    adc  r1, r16
    std  Y+1+\k, r18
    mov  r23, r1
    mul  r17, r21
    add  r0, r23
    adc  r1, r16
    ldd  r18, Y+2+\k
    add  r18, r0
    adc  r1, r16
    std  Y+2+\k, r18
    mov  r23, r1
    mul  r17, r22
    add  r0, r23
    adc  r1, r16
    ldd  r18, Y+3+\k
    add  r18, r0
    adc  r1, r16
    std  Y+3+\k, r18
    std  Y+4+\k, r1
.endr
    movw r30, r24
.irp k, 1, 2, 3, 4, 5, 6
    ldd  r18, Y+\k
    st   Z+, r18
.endr
    clr  r1
    adiw r28, 6
    in   r0, SREG
    cli
    out  SPH, r29
    out  SREG, r0
    out  SPL, r28
    pop  r29
    pop  r28
    pop  r17
    pop  r16
    ret
