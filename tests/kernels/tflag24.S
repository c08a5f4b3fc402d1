; Squares 24 bits in two blocks of three columns; the bit that the doubling shifts from one to the other waits in T, the
; carry of the diagonal in the high byte of a1^2, which is never above 0xfe.
; void sqr24(uint8_t *r, const uint8_t *a)
.global sqr24
sqr24:
    movw r26, r24
    movw r30, r22
    ld   r18, Z
    ldd  r19, Z+1
    ldd  r20, Z+2
    clr  r25
    mul  r18, r19           ; columns 1 and 2, the spill of column 2 in r24
    movw r22, r0
    mul  r18, r20
    clr  r24
    add  r23, r0
    adc  r24, r1
    bst  r23, 7
    lsl  r22
    rol  r23
    mul  r19, r19
    movw r30, r0
    mul  r18, r18
    add  r22, r1
    adc  r23, r30
    adc  r31, r25
    st   X+, r0
    st   X+, r22
    st   X+, r23
    mul  r19, r20           ; columns 3 and 4
    clr  r21
    add  r24, r0
    adc  r21, r1
    mul  r20, r20
    clr  r22
    lsl  r24
    bld  r24, 0
    rol  r21
    rol  r22
    add  r24, r31
    adc  r21, r0
    adc  r22, r1
    st   X+, r24
    st   X+, r21
    st   X, r22
    clr  r1
    ret
