; As karatsuba32.S, but L + H and - M go on side by side in groups of two bytes: the carry and the borrow are parked as
; masks between (SBC p,p and LSR p), and what is left of them above is one signed byte, which is sign-extended.
; void sqr32(uint8_t *r, const uint8_t *a)

; p0..p3 = (x1:x0)^2, zero in r27
.macro square16 x0, x1, p0, p1, p2, p3
    mul  \x0, \x0
    movw \p0, r0
    mul  \x1, \x1
    movw \p2, r0
    mul  \x0, \x1
    add  \p1, r0
    adc  \p2, r1
    adc  \p3, r27
    add  \p1, r0
    adc  \p2, r1
    adc  \p3, r27
.endm

.global sqr32
sqr32:
    push r10
    push r11
    push r12
    push r13
    push r14
    push r15
    push r16
    push r17
    movw r30, r22
    ld   r18, Z+
    ld   r19, Z+
    ld   r20, Z+
    ld   r21, Z
    movw r30, r24
    clr  r27
    square16 r18, r19, r22, r23, r24, r25      ; L
    square16 r20, r21, r14, r15, r16, r17      ; H
    sub  r18, r20           ; |lo - hi|
    sbc  r19, r21
    sbc  r26, r26
    eor  r18, r26
    eor  r19, r26
    sub  r18, r26
    sbc  r19, r26
    square16 r18, r19, r10, r11, r12, r13      ; M
    movw r18, r22
    movw r20, r24
    add  r18, r14           ; bytes 0 and 1
    adc  r19, r15
    sbc  r26, r26           ; minus the carry
    sub  r18, r10
    sbc  r19, r11
    sbc  r27, r27           ; minus the borrow
    lsr  r26                ; bytes 2 and 3
    adc  r20, r16
    adc  r21, r17
    sbc  r26, r26
    lsr  r27
    sbc  r20, r12
    sbc  r21, r13
    sbc  r27, r27
    sub  r27, r26           ; carry - borrow, and its sign
    mov  r26, r27
    lsl  r26
    sbc  r26, r26
    add  r24, r18
    adc  r25, r19
    adc  r14, r20
    adc  r15, r21
    adc  r16, r27
    adc  r17, r26
    st   Z+, r22
    st   Z+, r23
    st   Z+, r24
    st   Z+, r25
    st   Z+, r14
    st   Z+, r15
    st   Z+, r16
    st   Z, r17
    clr  r1
    pop  r17
    pop  r16
    pop  r15
    pop  r14
    pop  r13
    pop  r12
    pop  r11
    pop  r10
    ret
