; Multiplies 32 by 32 bits by four calls of an inner function that multiplies 16 by 16 bits.
; void mul32(uint8_t *r, const uint8_t *a, const uint8_t *b)

; r25:r24:r23:r22 = X[0..1] * Y[0..1]; r27:r26 is kept; r18 to r21 are not; r2 is zero
.text
mul16:
    ld   r18, X+
    ld   r19, X
    sbiw r26, 1
    ldd  r20, Y+0
    ldd  r21, Y+1
    mul  r18, r20
    movw r22, r0
    mul  r19, r21
    movw r24, r0
    mul  r18, r21
    add  r23, r0
    adc  r24, r1
    adc  r25, r2
    mul  r19, r20
    add  r23, r0
    adc  r24, r1
    adc  r25, r2
    ret

; adds the inner product to Z[at..at+3] and the carry to the two bytes above; no carry leaves these
.macro accumulate at
    ldd  r18, Z+\at+0
    add  r18, r22
    std  Z+\at+0, r18
    ldd  r18, Z+\at+1
    adc  r18, r23
    std  Z+\at+1, r18
    ldd  r18, Z+\at+2
    adc  r18, r24
    std  Z+\at+2, r18
    ldd  r18, Z+\at+3
    adc  r18, r25
    std  Z+\at+3, r18
    ldd  r18, Z+\at+4
    adc  r18, r2
    std  Z+\at+4, r18
    ldd  r18, Z+\at+5
    adc  r18, r2
    std  Z+\at+5, r18
.endm

.global mul32
mul32:
    push r2
    push r28
    push r29
    clr  r2
    movw r30, r24
    movw r26, r22
    movw r28, r20
    rcall mul16             ; low, low
    std  Z+0, r22
    std  Z+1, r23
    std  Z+2, r24
    std  Z+3, r25
    adiw r26, 2
    adiw r28, 2
    rcall mul16             ; high, high
    std  Z+4, r22
    std  Z+5, r23
    std  Z+6, r24
    std  Z+7, r25
    sbiw r28, 2
    rcall mul16             ; high, low
    accumulate 2
    sbiw r26, 2
    adiw r28, 2
    rcall mul16             ; low, high
    accumulate 2
    clr  r1
    pop  r29
    pop  r28
    pop  r2
    ret
