; Multiplies 32 by 32 bits by Karatsuba's method with signed differences: d = a_lo - a_hi, e = b_hi - b_lo modulo X = 2^16,
; sa and se their borrows, kept as masks.  d e, less X times (sa & e) and (se & d), plus X^2 sa se is the signed product.
; void mul32(uint8_t *r, const uint8_t *a, const uint8_t *b)

; p0..p3 = (x1:x0) (y1:y0), zero in r27
.macro multiply16 x0, x1, y0, y1, p0, p1, p2, p3
    mul  \x0, \y0
    movw \p0, r0
    mul  \x1, \y1
    movw \p2, r0
    mul  \x0, \y1
    add  \p1, r0
    adc  \p2, r1
    adc  \p3, r27
    mul  \x1, \y0
    add  \p1, r0
    adc  \p2, r1
    adc  \p3, r27
.endm

; m:t2 -= (x1:x0) & mask, t2:t1 two bytes, m the borrow's byte
.macro subtract_masked t1, t2, m, x0, x1, mask
    mov  r14, \x0
    and  r14, \mask
    mov  r15, \x1
    and  r15, \mask
    sub  \t1, r14
    sbc  \t2, r15
    sbc  \m, r27
.endm

.global mul32
mul32:
    .irp r, 2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,28,29
    push r\r
    .endr
    movw r30, r24
    movw r26, r22
    movw r28, r20
    .irp r, 18,19,20,21
    ld   r\r, X+
    .endr
    .irp r, 22,23,24,25
    ld   r\r, Y+
    .endr
    clr  r27
    multiply16 r18, r19, r22, r23, r2, r3, r4, r5          ; L
    multiply16 r20, r21, r24, r25, r6, r7, r8, r9          ; H
    sub  r18, r20           ; d, sa
    sbc  r19, r21
    sbc  r16, r16
    sub  r24, r22           ; e, se
    sbc  r25, r23
    sbc  r17, r17
    multiply16 r18, r19, r24, r25, r10, r11, r12, r13
    movw r20, r2            ; L + H + d e
    movw r22, r4
    clr  r26
    add  r20, r6
    adc  r21, r7
    adc  r22, r8
    adc  r23, r9
    adc  r26, r27
    add  r20, r10
    adc  r21, r11
    adc  r22, r12
    adc  r23, r13
    adc  r26, r27
    subtract_masked r22, r23, r26, r24, r25, r16
    subtract_masked r22, r23, r26, r18, r19, r17
    and  r16, r17
    sub  r26, r16
    add  r4, r20
    adc  r5, r21
    adc  r6, r22
    adc  r7, r23
    adc  r8, r26
    adc  r9, r27
    .irp r, 2,3,4,5,6,7,8,9
    st   Z+, r\r
    .endr
    clr  r1
    .irp r, 29,28,17,16,15,14,13,12,11,10,9,8,7,6,5,4,3,2
    pop  r\r
    .endr
    ret
